package viewer

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestAViewerThatHearsOfARevocationFirstIsNoLiar: two trackers tell their viewers at different moments, and a viewer that refuses a piece that
// it still announces is banned.
func TestAViewerThatHearsOfARevocationFirstIsNoLiar(t *testing.T) {
	s := newScene(t, fourSeconds(20, 500_000))
	a := s.viewer(access{up: 200_000, down: 12.5e6}, nil)
	s.w.run(12 * time.Second)
	b := s.viewer(fast, nil)
	s.w.run(100 * time.Millisecond)
	asks := func() bool {
		if b.title.engine == nil {
			return false
		}
		r := b.title.engine.peers.byID[hex.EncodeToString(a.title.welcomed.Session[:])]
		return r != nil && r.download != nil && len(r.download.Orders()) > 8
	}
	for range 2000 {
		if asks() {
			break
		}
		s.w.run(5 * time.Millisecond)
	}
	if !asks() {
		t.Fatal("nothing is asked for")
	}
	s.w.run(40 * time.Millisecond) // until what was asked has arrived
	tomb := []certificate.Revocation{certificate.Tombstone("test", "/media/", s.w.now.Add(time.Hour))}
	a.title.engine.verification.revoke(tomb)
	s.w.run(300 * time.Millisecond)
	b.title.engine.verification.revoke(tomb)
	s.w.run(100 * time.Second)
	s.check()
	for _, v := range []*actor{a, b} {
		if sum := v.now(); sum.Banned > 0 || sum.LinksClosed[peer.CloseFalse] > 0 {
			t.Errorf("%d banned, links closed: %v", sum.Banned, sum.LinksClosed)
		}
	}
}
