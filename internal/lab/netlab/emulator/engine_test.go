package emulator

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"
)

// sent is a packet as it left the network in virtual time.
type sent struct {
	id int
	at time.Duration
}

// bench is an engine between two ports, in virtual time.
type bench struct {
	*Engine
	out  []sent
	from int // the port where put puts
}

func address(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}) }

// chain joins port 0 to port 1 by links one after the other; there is no way back.
func chain(t testing.TB, links ...Link) *bench {
	t.Helper()
	way := make([]int, len(links))
	for i := range way {
		way[i] = i
	}
	b := &bench{}
	var err error
	b.Engine, err = NewEngine(Config{Links: links, Ports: []Port{
		{Name: "a", Addresses: []netip.Addr{address(0)}, Routes: map[int][]int{1: way}},
		{Name: "b", Addresses: []netip.Addr{address(1)}},
	}}, func(port int, p *Packet, due time.Duration) {
		if port != 1 {
			t.Errorf("a packet left at port %d", port)
		}
		b.out = append(b.out, sent{int(binary.BigEndian.Uint32(p.Data[28:])), due})
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// put has a UDP packet of a flow come in.
func (b *bench) put(id, flow, size int, now time.Duration) {
	p := b.Packet()
	clear(p.Data[:])
	d := p.Data[:size]
	d[0], d[9] = 0x45, protocolUDP
	copy(d[12:], address(0).AsSlice())
	copy(d[16:], address(1).AsSlice())
	binary.BigEndian.PutUint16(d[20:], uint16(flow))
	binary.BigEndian.PutUint32(d[28:], uint32(id))
	p.Size = size
	b.Arrive(b.from, p, now)
}

func (b *bench) finish() []sent {
	b.Run(math.MaxInt64)
	return b.out
}

const ms = time.Millisecond

func TestRateAndDelay(t *testing.T) {
	b := chain(t, Link{Rate: 8_000_000, Delay: 20 * ms, Queue: 10_000}) // a byte takes a microsecond
	b.put(1, 0, 1000, 0)
	b.put(2, 0, 500, 0)
	b.put(3, 0, 100, 10*ms)
	want := []sent{{1, 21 * ms}, {2, 21*ms + 500*time.Microsecond}, {3, 30*ms + 100*time.Microsecond}}
	if got := b.finish(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if c := b.Counters(time.Second, false)[0]; c.Busy != 1600*time.Microsecond || c.Packets != 3 || c.Bytes != 1600 || c.MaxQueueBytes != 500 {
		t.Errorf("counters %+v", c)
	}
}

func TestQueueHoldsItsBytesAndNoMore(t *testing.T) {
	b := chain(t, Link{Rate: 8_000_000, Queue: 3500})
	for i := range 10 {
		b.put(i, 0, 1000, 0)
	}
	b.put(10, 0, 500, 0)       // still fits behind three of a thousand bytes
	b.put(11, 0, 100, 0)       // does not
	b.put(12, 0, 1000, 1*ms)   // the second is being sent now: there is room for 1000
	b.put(13, 0, 1000, 1*ms)   // and for no more
	b.put(14, 0, 2000, 100*ms) // an idle link sends at once what would never fit its queue
	ids := make([]int, 0, 8)
	for _, s := range b.finish() {
		ids = append(ids, s.id)
	}
	if want := []int{0, 1, 2, 3, 10, 12, 14}; !slices.Equal(ids, want) {
		t.Errorf("delivered %v, want %v", ids, want)
	}
	c := b.Counters(time.Second, false)[0]
	if c.QueueDrops != 8 || c.MaxQueueBytes != 3500 || c.MaxQueuePackets != 4 {
		t.Errorf("counters %+v", c)
	}
}

func TestJitterKeepsOrderUnlessAsked(t *testing.T) {
	for _, reorder := range []bool{false, true} {
		b := chain(t, Link{Delay: 5 * ms, Jitter: 10 * ms, Reorder: reorder, Seed: 3})
		for i := range 1000 {
			b.put(i, 0, 100, time.Duration(i)*ms)
		}
		got := b.finish()
		swaps, least, most := 0, time.Hour, time.Duration(0)
		for i, s := range got {
			if i > 0 && s.id < got[i-1].id {
				swaps++
			}
			delay := s.at - time.Duration(s.id)*ms
			least, most = min(least, delay), max(most, delay)
		}
		if len(got) != 1000 || (swaps > 0) != reorder || (b.Counters(time.Hour, false)[0].Reordered > 0) != reorder {
			t.Errorf("reorder %v: %d packets, %d swaps, %+v", reorder, len(got), swaps, b.Counters(time.Hour, false))
		}
		if least < 5*ms || most > 15*ms || most-least < 8*ms {
			t.Errorf("reorder %v: delays from %v to %v, want 5 to 15 ms", reorder, least, most)
		}
	}
}

func TestLossIsAsOftenAndAsLongAsAsked(t *testing.T) {
	for _, c := range []Link{{Loss: 0.01}, {Loss: 0.2}, {Loss: 0.05, LossBurst: 4}, {Loss: 0.5, LossBurst: 3}, {Loss: 1}, {Loss: 0}} {
		c.Seed = 11
		b := chain(t, c)
		const n = 200_000
		for i := range n {
			b.put(i, 0, 100, time.Duration(i)*time.Microsecond)
		}
		got := b.finish()
		share := 1 - float64(len(got))/n
		if math.Abs(share-c.Loss) > 0.1*c.Loss {
			t.Errorf("%+v: share %.4f", c, share)
		}
		gaps, lost := 0, 0
		for i := 1; i < len(got); i++ {
			if d := got[i].id - got[i-1].id - 1; d > 0 {
				gaps, lost = gaps+1, lost+d
			}
		}
		if c.LossBurst > 1 {
			if mean := float64(lost) / float64(gaps); math.Abs(mean-c.LossBurst) > 0.1*c.LossBurst {
				t.Errorf("%+v: %.2f losses in a row", c, mean)
			}
		}
	}
}

func TestSpikesHoldAndRelease(t *testing.T) {
	b := chain(t, Link{Delay: 10 * ms, SpikeEvery: 500 * ms, Spike: 100 * ms, Seed: 5})
	const n = 20_000
	for i := range n {
		b.put(i, 0, 100, time.Duration(i)*ms)
	}
	held, bursts := 0, 0
	for i, s := range b.finish() {
		delay := s.at - time.Duration(s.id)*ms
		if s.id != i || delay < 10*ms || delay > 110*ms {
			t.Fatalf("packet %d came as number %d after %v", s.id, i, delay)
		}
		if delay > 10*ms {
			held++
		}
		if delay > 109*ms {
			bursts++
		}
	}
	// A spike comes 500 ms after the end of the last one, in the mean: n·1 ms / 600 ms of them, 100 packets in each.
	if bursts < 20 || bursts > 50 || held < 2000 || held > 5000 {
		t.Errorf("%d packets held in %d bursts", held, bursts)
	}
}

// What comes out does not depend on how often the engine is asked, which is what makes a late wake-up harmless.
func TestAskingDoesNotChangeAnything(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		links := make([]Link, 1+random.IntN(3))
		for i := range links {
			links[i] = anyLink(random, seed)
		}
		lazy, eager := chain(t, links...), chain(t, links...)
		now := time.Duration(0)
		for i := range 300 {
			step := time.Duration(random.IntN(2_000_000))
			for range 5 {
				now += step / 5
				eager.Counters(now, false)
			}
			size, flow := 40+random.IntN(1400), random.IntN(3)
			now += step % 5
			lazy.put(i, flow, size, now)
			eager.put(i, flow, size, now)
		}
		if a, b := lazy.finish(), eager.finish(); !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d: %+v: %d packets asked seldom, %d asked often, or at other times", seed, links, len(a), len(b))
		}
	}
}

// Traffic that comes from elsewhere meets, on a shared link, packets that are still on their way to it.
func TestPacketsMeetInOrderOfTime(t *testing.T) {
	var out []sent
	e, err := NewEngine(Config{Links: []Link{{Delay: 10 * ms}, {Rate: 8_000_000, Queue: 100_000}}, Ports: []Port{
		{Name: "far", Addresses: []netip.Addr{address(0)}, Routes: map[int][]int{2: {0, 1}}},
		{Name: "near", Addresses: []netip.Addr{address(2)}, Routes: map[int][]int{2: {1}}},
		{Name: "to", Addresses: []netip.Addr{address(1)}},
	}}, func(_ int, p *Packet, due time.Duration) {
		out = append(out, sent{int(binary.BigEndian.Uint32(p.Data[28:])), due})
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Engine: e}
	for id, put := range []struct {
		from int
		at   time.Duration
	}{{0, 0}, {1, 10*ms + 500*time.Microsecond}, {0, 100 * ms}, {1, 130 * ms}} {
		b.from = put.from
		b.put(id, 0, 1000, put.at)
	}
	e.Run(math.MaxInt64)
	if want := []sent{{0, 11 * ms}, {1, 12 * ms}, {2, 111 * ms}, {3, 131 * ms}}; !reflect.DeepEqual(out, want) {
		t.Errorf("%v, want %v", out, want)
	}
}

func anyLink(random *rand.Rand, seed uint64) Link {
	l := Link{Seed: seed + 1, Delay: time.Duration(random.IntN(30)) * ms}
	if random.IntN(4) > 0 {
		l.Rate, l.Queue = int64(1+random.IntN(20))*500_000, 1500+random.IntN(30_000)
		l.Fair = random.IntN(2) == 0
	}
	if random.IntN(3) == 0 {
		l.Loss, l.LossBurst = 0.1, float64(random.IntN(3))
	}
	if random.IntN(3) == 0 {
		l.Jitter, l.Reorder = 7*ms, random.IntN(2) == 0
	}
	if random.IntN(4) == 0 {
		l.Spike, l.SpikeEvery = 20*ms, 100*ms
	}
	return l
}

// Nothing appears or disappears, no queue holds more than its bound, nothing is faster than its rate and delay allow.
func TestLinksKeepTheirPromises(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		link := anyLink(random, seed)
		b := chain(t, link)
		came, sizes := map[int]time.Duration{}, map[int]int{}
		now := time.Duration(0)
		for i := range 500 {
			now += time.Duration(random.IntN(1_500_000))
			sizes[i] = 40 + random.IntN(1400)
			came[i] = now
			b.put(i, random.IntN(4), sizes[i], now)
			if c := b.Counters(now, false)[0]; link.Rate > 0 && c.QueueBytes > link.Queue || c.MaxQueueBytes > max(link.Queue, c.QueueBytes) {
				t.Fatalf("seed %d: %+v: %d bytes wait, at most %d before", seed, link, c.QueueBytes, c.MaxQueueBytes)
			}
		}
		out := b.finish()
		c := b.Counters(math.MaxInt64, false)[0]
		if c.Packets != 500 || c.Delivered != uint64(len(out)) || c.QueueBytes != 0 || c.Flying != 0 ||
			c.Packets != c.Delivered+c.QueueDrops+c.Lost || c.Sent != c.Delivered+c.Lost {
			t.Fatalf("seed %d: %+v: %d came out, %+v", seed, link, len(out), c)
		}
		seen := map[int]bool{}
		for _, s := range out {
			least := link.Delay
			if link.Rate > 0 {
				least += time.Duration(int64(sizes[s.id]) * 8e9 / link.Rate)
			}
			if seen[s.id] || s.at < came[s.id]+least {
				t.Fatalf("seed %d: %+v: packet %d came at %v, left at %v (twice: %v)", seed, link, s.id, came[s.id], s.at, seen[s.id])
			}
			seen[s.id] = true
		}
		if !slices.IsSortedFunc(out, func(a, b sent) int { return int(a.at - b.at) }) {
			t.Fatalf("seed %d: out of order in time", seed)
		}
	}
}

func TestStrangersAreCounted(t *testing.T) {
	b := chain(t, Link{})
	p := b.Packet()
	p.Data, p.Size = [MaxPacket]byte{0: 0x45, 16: 10, 19: 77}, 40 // to 10.0.0.77
	b.Arrive(0, p, 0)
	for _, odd := range []int{0, 1, 19, 39} { // too short, for IPv6 too
		p := b.Packet()
		p.Data, p.Size = [MaxPacket]byte{0: 0x60}, odd
		b.Arrive(0, p, 0)
	}
	if got := b.finish(); len(got) != 0 || b.unrouted != 1 {
		t.Errorf("%v came out, %d unrouted", got, b.unrouted)
	}
}

func TestSetKeepsWhatWaits(t *testing.T) {
	b := chain(t, Link{Rate: 8_000_000, Delay: 10 * ms, Queue: 10_000})
	for i := range 4 {
		b.put(i, 0, 1000, 0)
	}
	if err := b.Set(0, Link{Rate: 80_000_000, Delay: 5 * ms, Queue: 10_000, Fair: true}, 1500*time.Microsecond); err != nil {
		t.Fatal(err)
	}
	// The first had been sent, the second was half sent and goes on; the others take the new rate.
	want := []sent{{0, 11 * ms}, {1, 11 * ms}, {2, 11 * ms}, {3, 11 * ms}}
	if got := b.finish(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v: later packets do not overtake earlier ones when the delay shrinks", got, want)
	}
	if err := b.Set(1, Link{}, 0); err == nil {
		t.Error("a link that is not there was set")
	}
}

func TestIPv6FindsItsWay(t *testing.T) {
	at := func(last byte) netip.Addr { return netip.AddrFrom16([16]byte{0x20, 1, 0, 2, 15: last}) }
	var left []int
	e, err := NewEngine(Config{Links: []Link{{Delay: time.Millisecond}}, Ports: []Port{
		{Name: "a", Addresses: []netip.Addr{at(1)}, Routes: map[int][]int{1: {0}}},
		{Name: "b", Addresses: []netip.Addr{address(1), at(2)}},
	}}, func(port int, p *Packet, _ time.Duration) { left = append(left, port, p.Size) })
	if err != nil {
		t.Fatal(err)
	}
	put := func(to netip.Addr, size int) {
		p := e.Packet()
		clear(p.Data[:])
		p.Data[0], p.Data[6], p.Size = 0x60, protocolUDP, size
		copy(p.Data[8:], at(1).AsSlice())
		copy(p.Data[24:], to.AsSlice())
		e.Arrive(0, p, 0)
	}
	put(at(2), 100)
	put(at(3), 100)                                 // for no host
	put(netip.MustParseAddr("ff02::2"), 100)        // for groups, which stay at home
	put(at(2), header6-1)                           // cut off
	put(netip.MustParseAddr("::ffff:10.0.0.2"), 60) // an IPv4 address is reached by IPv4
	e.Run(time.Second)
	if !slices.Equal(left, []int{1, 100}) || e.unrouted != 2 {
		t.Errorf("left: %v; %d went nowhere, want 2", left, e.unrouted)
	}
	if _, err := NewEngine(Config{Ports: []Port{{Name: "a", Addresses: []netip.Addr{netip.MustParseAddr("::ffff:10.0.0.2")}}}}, nil); err == nil {
		t.Error("an address of both kinds was taken")
	}
}
