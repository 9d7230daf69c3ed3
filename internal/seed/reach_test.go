package seed_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
)

// bell is rung by the test.
type bell struct {
	key  string
	ring func()
}

func (b *bell) Expect(key string, rung func()) { b.key, b.ring = key, rung }

// outside is a seed that no client has reached yet, with a tracker on the bus that hears what it asks for.
func outside(t *testing.T) (w *world, b *bell, probes chan bus.Probe) {
	t.Helper()
	b, probes = &bell{}, make(chan bus.Probe, 64)
	w = newWorld(t, newOrigin(t), func(_ *site.Config, c *seed.Config) {
		c.Outside, c.Bell = []netip.AddrPort{netip.MustParseAddrPort("203.0.113.5:4600")}, b
	})
	w.subscribe(bus.SubjectProbe(w.tracker), func(data []byte) {
		var m bus.Probe
		if err := bus.Decode(data, &m); err != nil {
			t.Errorf("probe: %v", err)
		}
		probes <- m
	})
	return w, b, probes
}

// drains is what the seed says about itself next that differs.
func (w *world) drains(is bool) {
	w.t.Helper()
	for {
		if m := wait(w.t, w.keys, "a beat that says something else"); m.Draining == is {
			return
		}
	}
}

func TestASeedIsNotReadyBeforeItWasReached(t *testing.T) {
	w, b, probes := outside(t)
	if err := w.seed.Ready(); err == nil || !strings.Contains(err.Error(), "203.0.113.5:4600") {
		t.Errorf("it is ready, or does not say where it was not reached: %v", err)
	}
	w.drains(true)
	beat, err := bus.Encode(&bus.TrackerBeat{Tracker: w.tracker})
	if err != nil {
		t.Fatal(err)
	}
	w.bus.send(bus.SubjectTrackerBeat, beat)
	if m := wait(t, probes, "it asks the tracker that it hears"); m.Seed != w.seed.ID() || m.Address != "203.0.113.5:4600" || m.Key != b.key {
		t.Errorf("it asks for %+v, and listens for %q", m, b.key)
	}
	b.ring()
	if err := w.seed.Ready(); err != nil {
		t.Errorf("reached, and %v", err)
	}
	w.drains(false)
	b.ring() // a second packet comes: nothing happens
}

// TestAViewerThatIsLinkedHasReachedTheSeed: what a tracker cannot send a packet to, a viewer may.
func TestAViewerThatIsLinkedHasReachedTheSeed(t *testing.T) {
	w, _, _ := outside(t)
	w.origin.film(1)
	w.connect(9, 1)
	if err := w.seed.Ready(); err != nil {
		t.Errorf("a viewer is linked, and %v", err)
	}
}

func TestASeedThatNeedsNoProbeIsReady(t *testing.T) {
	w := newWorld(t, newOrigin(t), nil)
	if err := w.seed.Ready(); err != nil {
		t.Error(err)
	}
	w.drains(false)
}
