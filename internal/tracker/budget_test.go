package tracker

import (
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// knocks is how often an address may begin now.
func (n *node) knocks(a netip.Addr) (times int) {
	for n.Knock(a) {
		times++
	}
	return times
}

func TestAnAddressHasABudgetBeforeHandsAreShaken(t *testing.T) {
	w := newWorld(t)
	var passed atomic.Int64
	began := time.Now()
	n := w.tracker(func(c *Config) {
		c.ConnectsPerSecond, c.BeatEvery, c.Now = 20, time.Hour, func() time.Time { return began.Add(time.Duration(passed.Load())) }
	})
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	if got := n.knocks(a); got != 100 {
		t.Errorf("%d at once, want 5 s worth", got)
	}
	if got := n.knocks(b); got != 100 {
		t.Errorf("another address has %d left", got)
	}
	if n.Knock(netip.MustParseAddr("2001:db8::2")) {
		t.Error("a client that has a /64 has all its budgets")
	}
	n.Entered(a)
	n.Entered(a)
	if got := n.knocks(a); got != 1 {
		t.Errorf("two requests gave %d whole places back", got)
	}
	passed.Add(int64(time.Second / 2))
	if got := n.knocks(a); got != 10 {
		t.Errorf("%d in half a second", got)
	}
	n.admission.mu.Lock()
	of := n.addresses[access.Network(a)]
	n.admission.mu.Unlock()
	for range 10 {
		n.offended(of)
	}
	if passed.Add(int64(time.Second)); n.Knock(a) {
		t.Error("a session that was ended for what it did begins again at once")
	}
	passed.Add(int64(time.Second))
	if got := n.knocks(a); got != 20 {
		t.Errorf("%d a second after the debt is paid, want 20: it is not more than of a second", got)
	}
	passed.Add(int64(time.Hour))
	n.maintain()
	n.admission.mu.Lock()
	defer n.admission.mu.Unlock()
	if len(n.addresses) > 0 {
		t.Errorf("%d addresses are remembered that owe nothing", len(n.addresses))
	}
}

// TestManyNetworksOfOnePrefixShareABudget: each /64 of a /48 begins as often as any address, and all of them sixteen times that.
func TestManyNetworksOfOnePrefixShareABudget(t *testing.T) {
	w := newWorld(t)
	var passed atomic.Int64
	began := time.Now()
	n := w.tracker(func(c *Config) {
		c.ConnectsPerSecond, c.MaxPerAddress, c.BeatEvery, c.Now = 2, 1, time.Hour, func() time.Time { return began.Add(time.Duration(passed.Load())) }
	})
	of := func(i int) netip.Addr {
		b := netip.MustParseAddr("2001:db8:7::1").As16()
		b[6], b[7] = byte(i>>8), byte(i)
		return netip.AddrFrom16(b)
	}
	knocks := 0
	for i := range 100 {
		knocks += n.knocks(of(i))
	}
	if knocks != 160 {
		t.Errorf("a /48 began %d times, want 16 × 10", knocks)
	}
	if got := n.knocks(netip.MustParseAddr("2001:db8:8::1")); got != 10 {
		t.Errorf("its neighbor began %d times, want 10", got)
	}
	passed.Add(int64(time.Hour))
	var held []*address
	for i := range 100 {
		if a, _ := n.admit(of(i)); a != nil {
			held = append(held, a)
		}
	}
	if len(held) != 16 {
		t.Errorf("a /48 holds %d sockets, want 16 × 1", len(held))
	}
	n.maintain() // forgets no identity that has sockets
	for _, a := range held {
		n.leave(a)
	}
	if a, reason := n.admit(of(0)); a == nil {
		t.Errorf("what was left is not free: %s", reason)
	} else {
		n.leave(a)
	}
	passed.Add(int64(time.Hour))
	n.maintain()
	n.admission.mu.Lock()
	defer n.admission.mu.Unlock()
	if len(n.addresses) > 0 {
		t.Errorf("%d networks are remembered that owe nothing", len(n.addresses))
	}
}

func raw(v *viewer, text string) { _ = v.ws.WriteMessage(websocket.TextMessage, []byte(text)) }

// TestASessionThatIsEndedForWhatItDidCosts: its address, more than to begin.
func TestASessionThatIsEndedForWhatItDidCosts(t *testing.T) {
	for name, offend := range map[string]func(v *viewer){
		"malformed": func(v *viewer) {
			for range maxBad {
				raw(v, "[[")
			}
		},
		"of a tracker": func(v *viewer) {
			for range maxBad {
				v.send(&signal.Ticket{Ticket: "t"})
			}
		},
		"too large": func(v *viewer) { raw(v, string(make([]byte, signal.MaxMessage+1))) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			n := w.tracker(func(c *Config) { c.ConnectsPerSecond, c.BeatEvery = 10, time.Hour })
			v := n.viewer("")
			offend(v)
			v.closed()
			local := netip.MustParseAddr("127.0.0.1")
			testkit.Eventually(t, "it has cost something", func() bool {
				n.admission.mu.Lock()
				defer n.admission.mu.Unlock()
				return n.addresses[access.Network(local)].connects.left <= 50-1-10
			})
		})
	}
}
