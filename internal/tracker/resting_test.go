package tracker

import (
	"testing"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestDeliveriesSayWhatRests: titles that some seed lets rest are counted once, and marked where they are told apart.
func TestDeliveriesSayWhatRests(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	now := w.clock.Now()
	for _, title := range []string{"/busy", "/busy", "/well", "/well"} {
		n.audience.count("demo", title, 1, now)
	}
	rests := func(titles ...string) (all []signal.ID) {
		for _, title := range titles {
			all = append(all, n.swarmID("demo", title))
		}
		return all
	}
	first := newID()
	n.roster.seed(bus.SeedBeat{Seed: first, Sites: []string{"demo"}, Resting: map[string][]signal.ID{"demo": rests("/busy", "/elsewhere")}}, now)
	n.roster.seed(bus.SeedBeat{Seed: newID(), Sites: []string{"demo"}, Resting: map[string][]signal.ID{"demo": rests("/busy"), "other": rests("/well")}}, now)
	look := func() (total int, marked string) {
		t.Helper()
		for _, d := range n.Deliveries() {
			if total = d.Resting; d.Site != "demo" {
				t.Fatalf("%+v", d)
			}
			for _, title := range d.Titles {
				if title.Rests {
					marked += title.Title
				}
			}
		}
		return total, marked
	}
	if total, marked := look(); total != 2 || marked != "/busy" {
		t.Errorf("%d rest, %q among them", total, marked)
	}
	n.roster.seed(bus.SeedBeat{Seed: first, Gone: true}, now)
	if total, marked := look(); total != 1 || marked != "/busy" {
		t.Errorf("%d rest, %q among them", total, marked)
	}
}
