package seed_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/sibling"
)

// mute is a fleet whose owners do not answer. It satisfies seed.Fleet.
type mute struct {
	asked  chan seed.Wanted // the questions
	counts int              // of viewers' requests
}

func (*mute) Join(seed.Local, int64)       {}
func (*mute) Says() *bus.SeedFleet         { return nil }
func (*mute) Heard(*bus.SeedBeat) bool     { return false }
func (m *mute) Asked(swarm.ID, segment.ID) { m.counts++ }
func (*mute) Warm() bool                   { return true }
func (*mute) WarmUp(context.Context)       {}
func (*mute) Drain()                       {}
func (*mute) Linger()                      {}
func (*mute) Expire() int                  { return 2 }
func (m *mute) Segment(ctx context.Context, w seed.Wanted) (*sibling.Answer, error) {
	m.asked <- w
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestASiblingDoesNotWaitForTheFleet: two seeds that differ about the owner of a segment ask each other at once. Each goes on to the
// origin then, once, for its viewer as well.
func TestASiblingDoesNotWaitForTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := []byte("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n0.m4s\n#EXT-X-ENDLIST\n")
		data := noise(50_000)
		fleet := &mute{asked: make(chan seed.Wanted, 8)}
		s := newStreet(t, func(path string) []byte {
			if path == "/film/index.m3u8" {
				return list
			}
			return data
		}, func(c *seed.Config) { c.Fleet = fleet })
		v := s.call(1, "net", "/film/index.m3u8")
		v.open()
		id := segment.NewID("demo", "/film/0.m4s")
		for len(v.wire().sent) > 0 {
			<-v.wire().sent
		}
		v.says(peer.CertificateRequest{Segments: []segment.ID{id}})
		synctest.Wait()
		if len(fleet.asked) != 1 || fleet.counts != 1 || s.count("/film/0.m4s") != 0 || len(v.wire().sent) != 0 {
			t.Fatalf("the fleet was asked %d times, the origin %d times", len(fleet.asked), s.count("/film/0.m4s"))
		}
		if w := <-fleet.asked; w.Segment != id || w.Swarm != v.swarm || w.Have != nil {
			t.Errorf("the fleet was asked for %+v", w)
		}
		began := time.Now()
		a := s.seed.Answer(t.Context(), sibling.Question{Segment: id, Swarm: v.swarm})
		if !slices.Equal(a.Data, data) || time.Since(began) > 0 {
			t.Errorf("%d bytes after %s, reason %d", len(a.Data), time.Since(began), a.None)
		}
		synctest.Wait()
		m, err := peer.Decode(peer.Control, <-v.wire().sent)
		if c, is := m.(peer.Certificate); err != nil || !is || !slices.Equal(c.Raw, a.Certificate) {
			t.Errorf("the viewer got %+v, %v", m, err)
		}
		if n := s.count("/film/0.m4s"); n != 1 {
			t.Errorf("the origin was asked %d times", n)
		}
		if s.value("leeway_seed_fetches_total", "demo", "origin") != 1 {
			t.Error("not counted as one fetch from the origin")
		}
	})
}
