package turnbench

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/relay"
	"github.com/leeway-video/leeway/internal/turnd"
)

type policy struct{ *relay.Relay }

func (p policy) Open(user string) (turnd.Flow, error) { return p.Relay.Open(user) }

// relayHere is a relay in this process.
func relayHere(t *testing.T) *turnd.Server {
	t.Helper()
	s, err := access.NewRelaySecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	loopback, err := access.ParsePeer("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := relay.New(relay.Config{Secrets: access.RelaySecrets{s}, Reach: access.Reach{Allow: []access.Peer{loopback}}})
	if err != nil {
		t.Fatal(err)
	}
	server, err := turnd.Listen(turnd.Config{Listen: "127.0.0.1:0", Policy: policy{rules}})
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// TestPacketsComeBack has the bench's clients use a relay.
func TestPacketsComeBack(t *testing.T) {
	defer goleak.VerifyNone(t)
	server := relayHere(t)
	defer server.Close()
	p, err := openPeer()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	c, err := gather(3, server.Addr().String(), p.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for deadline := time.Now().Add(10 * time.Second); ; {
		if err := c.pace(t.Context(), 1200, 500, 20*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if sent, back := c.counts(); sent >= 10 && back >= 10 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing comes back")
		}
	}
	if server.Allocations() != 3 {
		t.Errorf("%d allocations", server.Allocations())
	}
}

// TestAGangCountsWhatComesBack of what it sends.
func TestAGangCountsWhatComesBack(t *testing.T) {
	defer goleak.VerifyNone(t)
	server := relayHere(t)
	defer server.Close()
	g, err := newGang()
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	for i := range 3 {
		l, err := openLine(netip.MustParseAddrPort("127.0.0.1:0"), netip.MustParseAddrPort(server.Addr().String()), g.peer.LocalAddr(), fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		g.join(l)
	}
	all := int64(0)
	for _, size := range []int{64, 1200} {
		got, err := g.send(t.Context(), size, 1000, 50*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if got.Sent == 0 || got.Sent > 50 || got.Back > got.Sent { // fewer where others have the machine for long
			t.Errorf("of %d bytes: %+v", size, got)
		}
		all += got.Back
	}
	if all == 0 {
		t.Error("nothing comes back")
	}
}

// TestTheHighestRateIsFound of a server that has enough at a rate, and has one bad moment.
func TestTheHighestRateIsFound(t *testing.T) {
	const limit = 123_456
	for name, c := range map[string]struct {
		slow    bool // the clients are the limit
		dropped int64
		void    string
	}{"the server": {}, "slow clients": {slow: true, void: "the clients sent"}, "full sockets": {dropped: 1_000_000, void: "own sockets dropped"}} {
		l, tries := ladder{name: "it", well: map[int]rung{}}, 0
		if err := l.climb(func(rate int) (s rung, err error) {
			tries++
			s.tally = tally{Sent: int64(rate), Back: int64(rate), Seconds: 1, Dropped: c.dropped}
			switch {
			case tries == 3:
				s.Back /= 2
			case rate > limit && c.slow:
				s.Seconds = 2
			case rate > limit:
				s.Back = limit / 2
			}
			return s, nil
		}); err != nil {
			t.Fatal(err)
		}
		if l.best > limit || l.best < limit*95/100 || l.rate <= limit {
			t.Errorf("%s: best %d, too much %d; it is %d", name, l.best, l.rate, limit)
		}
		if got := l.void(); (got == "") != (c.void == "") || !strings.Contains(got, c.void) {
			t.Errorf("%s: void for %q", name, got)
		}
	}
	none := ladder{well: map[int]rung{}}
	if err := none.climb(func(rate int) (rung, error) {
		return rung{tally: tally{Sent: int64(rate), Seconds: 1}}, nil
	}); err != nil || none.best != 0 || none.void() == "" {
		t.Errorf("of a server that relays nothing: %+v, %v", none, err)
	}
	if (ladder{best: 1}).void() == "" {
		t.Error("a server that is never too slow has a highest rate")
	}
	one, other := ladder{well: map[int]rung{1: {}, 2: {}, 4: {}}}, ladder{well: map[int]rung{1: {}, 2: {}, 3: {}}}
	if got := one.common(other); got != 2 {
		t.Errorf("compared at %d", got)
	}
}

func TestEachClientHasAPortOfItsOwn(t *testing.T) {
	seen := map[netip.AddrPort]bool{}
	for i := range mostMany {
		at := clientAt(i)
		if seen[at] || !at.Addr().IsLoopback() {
			t.Fatalf("client %d is at %s", i, at)
		}
		seen[at] = true
	}
}

func TestFigures(t *testing.T) {
	m := measured{sent: 1000, back: 1000 - 1, seconds: 1, cpu: 0.5}
	if m.loss() != 1 || m.perCore() != 3998 || math.Abs(m.perGB(1000)-250.125) > 0.001 {
		t.Errorf("%v %v %v", m.loss(), m.perCore(), m.perGB(1000))
	}
	if m.late(traffic{perSecond: 1000}) != "" || m.late(traffic{perSecond: 1100}) == "" {
		t.Error("a late client is not told")
	}
}
