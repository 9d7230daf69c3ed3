package tracker

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// refused says whether a further socket is turned away.
func (n *node) refused() bool {
	v := n.socket()
	v.send(&signal.Hello{Version: 1, Site: "demo"})
	_ = v.ws.SetReadDeadline(time.Now().Add(testkit.Patience))
	_, b, err := v.ws.ReadMessage()
	if err != nil {
		return true
	}
	m, err := signal.Decode(b)
	if err != nil {
		n.world.t.Fatal(err)
	}
	_, welcome := m.(*signal.Welcome)
	_ = v.ws.Close()
	return !welcome
}

// TestSocketsCountBeforeTheirHello: a client that says nothing holds a file and two goroutines all the same.
func TestSocketsCountBeforeTheirHello(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(func(c *Config) { c.MaxSessions, c.HelloTimeout = 2, time.Hour })
	silent := n.socket()
	n.socket()
	testkit.Eventually(t, "both are served", func() bool {
		n.admission.mu.Lock()
		defer n.admission.mu.Unlock()
		return n.sockets == 2
	})
	if !n.refused() {
		t.Error("a third was taken in")
	}
	if w.metrics.Value(defRejected, "total") != 1 {
		t.Error("the refusal is not counted")
	}
	_ = silent.ws.Close()
	testkit.Eventually(t, "room for another", func() bool { return !n.refused() })
}

func TestOneAddressCannotTakeAllSessions(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(func(c *Config) { c.MaxPerAddress = 2 })
	first := n.viewer("")
	n.viewer("")
	n.maintain() // must not forget an address that holds sockets
	if !n.refused() {
		t.Error("a third was taken in")
	}
	if w.metrics.Value(defRejected, "rate") != 1 {
		t.Error("the refusal is not counted")
	}
	_ = first.ws.Close()
	testkit.Eventually(t, "room for another", func() bool { return !n.refused() })
}

func TestErrorsOfAJoinLeaveTheSocketOpen(t *testing.T) {
	w := newWorld(t)
	v := w.tracker(func(c *Config) { c.MaxHomes, c.MaxSwarms = 2, 2 }).viewer("")
	for _, c := range []struct{ title, code string }{{"a", ""}, {"b", ""}, {"c", "too-many-swarms"}} {
		v.send(&signal.Join{Title: c.title, Role: "full"})
		if c.code == "" {
			expect[*signal.Joined](v)
		} else if e := expect[*signal.Error](v); e.Code != c.code || e.RetryAfterMs == 0 {
			t.Errorf("got %+v", e)
		}
	}
	v = newWorld(t).tracker(func(c *Config) { c.MaxHomes = 1 }).viewer("")
	v.send(&signal.Join{Title: "a", Role: "full"})
	expect[*signal.Joined](v)
	v.send(&signal.Join{Title: "b", Role: "full"})
	if e := expect[*signal.Error](v); e.Code != "swarm-full" || e.RetryAfterMs == 0 {
		t.Errorf("more swarms than have a home: %+v", e)
	}
}
