package netlab

import (
	"errors"
	"io"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// attempts is how often a measurement is repeated when the lab says of itself that it was not accurate.
const attempts = 5

// certified repeats measure until the lab certifies its own timing, and then has the result checked by what measure
// returned; nil says that what was sent was late, and is no measurement either. A machine that never gets there says nothing
// about the code: the test is skipped, and says so.
func certified(t *testing.T, lab *Lab, measure func() (check func())) Report {
	t.Helper()
	var report Report
	for range attempts {
		if err := lab.Mark(); err != nil {
			t.Fatal(err)
		}
		check := measure()
		var err error
		if report, err = lab.Report(); err != nil {
			t.Fatal(err)
		}
		if err = report.Timing(); err == nil && check == nil {
			err = errors.New("the sender was late")
		}
		if err != nil {
			t.Logf("once more: %v", err)
			continue
		}
		t.Log(report)
		check()
		return report
	}
	t.Skipf("this machine was too busy %d times in a row: %v", attempts, report)
	return report
}

func median[T time.Duration | float64](values []T) T {
	if len(values) == 0 {
		return T(math.MinInt32)
	}
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s: %.4g, want %.4g ± %.1f %%", what, got, want, 100*tolerance)
	} else {
		t.Logf("%s: %.5g for %.5g (%+.2f %%)", what, got, want, 100*(got/want-1))
	}
}

// offer sends packets of size bytes at a rate in bits per second, in bursts of a millisecond.
func offer(from socket, to netip.AddrPort, size int, rate float64, length time.Duration) (sent int) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); time.Since(begin) < length; <-tick.C {
		for due := rate * time.Since(begin).Seconds() / float64(8*size); float64(sent) < due; sent++ {
			from.send(to, sent, size)
		}
	}
	return sent
}

// collect receives in the background. The function that it returns says that everything was sent, and waits until
// nothing comes any more: a sender that was kept waiting in between does not end the collection.
func collect(s socket) (finish func() []arrival) {
	var all atomic.Bool
	got := make(chan []arrival, 1)
	go func() {
		var arrivals []arrival
		for {
			sent := all.Load()
			arrivals = append(arrivals, s.drain()...)
			if sent {
				got <- arrivals
				return
			}
		}
	}()
	return func() []arrival {
		all.Store(true)
		return <-got
	}
}

func TestDelayIsExact(t *testing.T) {
	const delay = 25 * time.Millisecond
	lab, a, b, _ := pair(t, Both(Link{Rate: 50_000_000, Delay: delay, Queue: 64 << 10}))
	from, to := udp(t, a), udp(t, b)
	certified(t, lab, func() func() {
		got := collect(to)
		offer(from, to.addr(), 500, 2_000_000, 400*time.Millisecond)
		var delays []time.Duration
		for _, r := range got() {
			delays = append(delays, r.delay)
		}
		want := delay + 500*8*time.Second/50_000_000
		return func() {
			if off := median(delays) - want; off < -time.Microsecond || off > time.Millisecond {
				t.Errorf("median delay %v of %d packets, want %v to %v", median(delays), len(delays), want, want+time.Millisecond)
			} else {
				t.Logf("median delay %v of %d packets: %v more than the line's", median(delays), len(delays), off)
			}
		}
	})
}

// A burst that waits in a long queue comes out at the line's rate, however late the sender's next time slice comes.
func TestRateIsExact(t *testing.T) {
	for rate, burst := range map[int64]int{1_000_000: 100, 20_000_000: 1500, 100_000_000: 5000} {
		const size = 1000
		lab, a, b, _ := pair(t, Both(Link{Rate: rate, Queue: burst * size}))
		from, to := udp(t, a), udp(t, b)
		packet := time.Duration(size*8) * time.Second / time.Duration(rate)
		certified(t, lab, func() func() {
			got, begin, late := collect(to), time.Now(), false
			for i := range burst {
				from.send(to.addr(), i, size)
				late = late || time.Since(begin) > time.Duration(i)*packet+time.Millisecond
			}
			all := got()
			if late { // the line was idle meanwhile
				return nil
			}
			return func() {
				if len(all) != burst {
					t.Fatalf("%d packets of %d arrived", len(all), burst)
				}
				took := all[burst-1].at.Sub(all[0].at).Seconds()
				within(t, "bits per second", float64((burst-1)*size*8)/took, float64(rate), 0.02)
			}
		})
	}
}

// A burst that comes at once finds room for one packet on the line and for a queue of them, and for none more.
func TestQueueIsExactToThePacket(t *testing.T) {
	const size, room, burst = 500, 20, 60
	rate := int64(200_000) // 20 ms a packet: the burst is over before the first has been sent
	lab, a, b, line := pair(t, Both(Link{Rate: rate, Queue: room*size + size/2}))
	from, to := udp(t, a), udp(t, b)
	certified(t, lab, func() func() {
		var all []arrival
		for slow := true; slow; { // a burst that took longer than a packet proves nothing
			if err := lab.Mark(); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			for i := range burst {
				from.send(to.addr(), i, size)
			}
			slow = time.Since(begin) > time.Duration(size*8)*time.Second/time.Duration(rate)
			all = to.drain()
		}
		return func() {
			if len(all) != 1+room || all[room].number != room {
				t.Fatalf("%d packets of a burst of %d arrived, want the first %d: %v", len(all), burst, 1+room, all)
			}
			gap := float64(all[room].at.Sub(all[0].at)) / room
			within(t, "nanoseconds between packets", gap, float64(time.Duration(size*8)*time.Second/time.Duration(rate)), 0.02)
		}
	})
	r, err := lab.Report()
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Directions[line.Up.Name]; c.MaxQueuePackets != room || c.Packets != burst || c.QueueDrops != burst-room-1 {
		t.Errorf("counters %+v", c)
	}
}

func TestReorderOnlyWhenAsked(t *testing.T) {
	for _, reorder := range []bool{false, true} {
		_, a, b, line := pair(t, Both(Link{Delay: 5 * time.Millisecond, Jitter: 20 * time.Millisecond, Reorder: reorder}))
		from, to := udp(t, a), udp(t, b)
		got := collect(to)
		sent := offer(from, to.addr(), 200, 1_600_000, 200*time.Millisecond)
		all := got()
		swaps := 0
		for i := 1; i < len(all); i++ {
			if all[i].number < all[i-1].number {
				swaps++
			}
		}
		counters, err := line.Up.Counters()
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != sent || (swaps > 0) != reorder || (counters.Reordered > 0) != reorder {
			t.Errorf("reorder %v: %d of %d arrived, %d swaps, %+v", reorder, len(all), sent, swaps, counters)
		}
	}
}

// The same seed loses the same packets, and as many as asked.
func TestLossIsSeeded(t *testing.T) {
	const n, loss = 2000, 0.1
	lost := func(seed uint64) (numbers []int) {
		_, a, b, line := pair(t, Both(Link{Loss: loss, Seed: seed}))
		from, to := udp(t, a), udp(t, b)
		got := collect(to)
		for i := range n {
			from.send(to.addr(), i, 100)
		}
		next := 0
		for _, r := range append(got(), arrival{number: n}) {
			for ; next < r.number; next++ {
				numbers = append(numbers, next)
			}
			next++
		}
		counters, err := line.Up.Counters()
		if err != nil {
			t.Fatal(err)
		}
		if int(counters.Lost) != len(numbers) || counters.Packets != n {
			t.Errorf("%d packets were lost, the line counted %+v", len(numbers), counters)
		}
		return numbers
	}
	one, same, other := lost(1), lost(1), lost(2)
	if !slices.Equal(one, same) || slices.Equal(one, other) {
		t.Errorf("seed 1 lost %d and then %d packets, seed 2 %d", len(one), len(same), len(other))
	}
	if share := float64(len(one)) / n; math.Abs(share-loss) > 0.03 { // 4.5 standard deviations
		t.Errorf("a share of %.3f was lost, want %.1f", share, loss)
	}
}

// The kernel's TCP fills a line with a queue of one bandwidth-delay product.
func TestTCPFillsTheLine(t *testing.T) {
	const rate, delay = 20_000_000, 10 * time.Millisecond
	lab, a, b, line := pair(t, Both(Link{Rate: rate, Delay: delay, Queue: BDP(rate, 2*delay)}))
	listener := listen(t, b)
	report := certified(t, lab, func() func() {
		n, took := transfer(t, a, listener, 1500*time.Millisecond)
		// 1448 bytes of payload in a packet of 1500. How much of that so short a run reaches depends on the time slices
		// that sender and receiver get.
		goodput := float64(n*8) / took.Seconds()
		return func() {
			if most := rate * 1448 / 1500.0; goodput < 0.3*most || goodput > most {
				t.Errorf("goodput %.3g, at most %.3g is possible", goodput, most)
			}
			t.Logf("CUBIC: %.2f Mbit/s of %.0f", goodput/1e6, rate/1e6)
		}
	})
	if c := report.Directions[line.Up.Name]; c.Busy > report.Took || c.SentBytes < c.Delivered*1000 {
		t.Errorf("counters %+v", c)
	}
}

// transfer writes from a host to a listener for some time and returns what was received, and after how long.
func transfer(t testing.TB, from *Host, to net.Listener, length time.Duration) (n int64, took time.Duration) {
	t.Helper()
	begin := time.Now()
	sent := make(chan error, 1)
	go func() {
		conn, err := from.DialContext(t.Context(), "tcp", to.Addr().String())
		if err == nil {
			chunk := make([]byte, 64<<10)
			for end := time.Now().Add(length); err == nil && time.Now().Before(end); {
				_, err = conn.Write(chunk)
			}
			err = errors.Join(err, conn.Close())
		}
		sent <- err
	}()
	conn, err := to.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	n, err = io.Copy(io.Discard, conn)
	took = time.Since(begin)
	if err := errors.Join(err, <-sent); err != nil {
		t.Fatal(err)
	}
	return n, took
}
