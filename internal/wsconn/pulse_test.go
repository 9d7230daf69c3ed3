package wsconn

import (
	"testing"
	"time"
)

func TestRoundTripsAreSmoothed(t *testing.T) {
	var p pulse
	at := int64(time.Hour)
	for i, c := range []struct{ took, rtt time.Duration }{
		{80 * time.Millisecond, 80 * time.Millisecond}, {160 * time.Millisecond, 100 * time.Millisecond}, {0, 75 * time.Millisecond},
	} {
		said := p.asks(at)
		at += int64(c.took)
		if p.ponged(at, said); p.RTT().Round(time.Microsecond) != c.rtt {
			t.Errorf("pong %d: %v, want %v", i, p.RTT(), c.rtt)
		}
	}
	old := p.asks(at)
	p.ponged(at, old)
	before := p.RTT()
	at += int64(time.Second)
	if p.ponged(at, old); p.RTT() != before || p.silent(at, 0) {
		t.Error("a pong that was not asked for is a sample, or is not heard")
	}
	long := append(p.asks(at), 0)
	for name, said := range map[string][]byte{"says nothing": nil, "says more": long, "answers an older ping": old} {
		if p.ponged(at, said); p.RTT() != before {
			t.Errorf("a pong that %s is a sample", name)
		}
	}
}

func TestSilenceAndStuckWritesAreNoted(t *testing.T) {
	var p pulse
	now := int64(time.Hour)
	p.heard.Store(now)
	if p.silent(now+int64(time.Second), time.Second) || !p.silent(now+int64(time.Second)+1, time.Second) {
		t.Error("silence does not begin right after its bound")
	}
	if p.overdue(now, time.Second) {
		t.Error("no write is under way, and one is overdue")
	}
	p.since.Store(now)
	if p.overdue(now+int64(time.Second), time.Second) || p.stuck.Load() {
		t.Error("a write within its time is overdue")
	}
	if !p.overdue(now+int64(time.Second)+1, time.Second) || !p.stuck.Load() {
		t.Error("a write beyond its time is not")
	}
}
