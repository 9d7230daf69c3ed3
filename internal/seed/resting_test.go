package seed_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// weighs has the seed hear what viewers had from each other.
func (w *world) weighs(viewers int, credited int64) {
	m := w.title(viewers)
	m.Credited = &credited
	w.toSeed(&bus.SeedDelivery{Kind: bus.KindTitle, Title: m}).Wait()
}

// TestATitleRestsWhosePeersCostMore: a seed that fetches for a title for two minutes, whose viewers have less from each other, fetches
// no more for it. What it holds it certifies and sends as before. After ten minutes it tries again.
func TestATitleRestsWhosePeersCostMore(t *testing.T) {
	const film = "/film/low/%d.m4s"
	segmentOf := func(n int) segment.Name { return segment.Name(fmt.Sprintf(film, n)) }
	for name, c := range map[string]struct {
		policy string
		shared int64 // bytes that viewers have from each other in a window, in which the seed fetches 200,000
		rests  bool
	}{
		"peers cost more":              {"", 100_000, true},
		"peers save more":              {"", 300_000, false},
		"the site lets them cost more": {site.CostlyShare, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t)
			o.film(4)
			clock := &jump{}
			w := newWorld(t, o, func(s *site.Config, config *seed.Config) {
				s.Policy.CostlyTitles, config.Now = c.policy, clock.now
			})
			v := w.connect(1, 1)
			w.weighs(3, 0)
			clock.forward(25 * time.Second)
			for n := range 2 {
				if _, none := v.certificate(segmentOf(n)); none != nil {
					t.Fatalf("segment %d: %+v", n, none)
				}
				clock.forward(time.Minute)
				w.weighs(3, int64(n+1)*c.shared)
			}
			_, none := v.certificate(segmentOf(2))
			if rests := none != nil && none.Reason == peer.NoneTooFewViewers; rests != c.rests || rests == (o.count("/vod"+string(segmentOf(2))) > 0) {
				t.Fatalf("rests: %+v; fetched %d times", none, o.count("/vod"+string(segmentOf(2))))
			}
			told := wait(t, w.keys, "a beat")
			for c.rests && len(told.Resting) == 0 {
				told = wait(t, w.keys, "a beat that says which title rests")
			}
			if c.rests != slices.Equal(told.Resting["demo"], []signal.ID{w.swarm}) {
				t.Errorf("the beat says %v", told.Resting)
			}
			held, none := v.certificate(segmentOf(1))
			if none != nil {
				t.Fatalf("what is held: %+v", none)
			}
			if data, rejected := v.fetch(held); rejected != nil || len(data) == 0 {
				t.Fatalf("what is held: %d bytes, %+v", len(data), rejected)
			}
			clock.forward(10 * time.Minute)
			w.weighs(3, 2*c.shared)
			if _, none = v.certificate(segmentOf(3)); none != nil {
				t.Errorf("after the rest: %+v", none)
			}
		})
	}
}
