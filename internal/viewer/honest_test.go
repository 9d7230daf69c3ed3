package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestNoHonestPeerIsBlamedForABusyLine has many ask one whose uplink is thin: it does not come to what some of them ask for before they
// take it back. No link ends for that.
func TestNoHonestPeerIsBlamedForABusyLine(t *testing.T) {
	twoSeconds := func(w *world) *film { return newFilm(w, 50, 2*time.Second, 250_000) }
	ask := func(s *scene, n int, up float64) {
		s.viewer(access{up: up, down: 2.5e6}, nil)
		s.w.run(20 * time.Second)
		for range n {
			s.viewer(access{up: 125_000, down: 2.5e6}, nil)
			s.w.run(500 * time.Millisecond)
		}
	}
	ended := 0
	for name, play := range map[string]func(*scene){
		"seven ask one":        func(s *scene) { ask(s, 7, 125_000) },
		"seven ask one of 0.5": func(s *scene) { ask(s, 7, 62_500) },
		"three ask one of 0.2": func(s *scene) { ask(s, 3, 25_000) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, twoSeconds)
			play(s)
			s.w.run(150 * time.Second)
			s.check()
			for i, a := range s.viewers {
				sum := a.now()
				ended += sum.LinksClosed[peer.CloseStalled]
				if sum.Banned > 0 {
					t.Errorf("viewer %d: %d banned", i, sum.Banned)
				}
			}
		})
	}
	if ended > 0 {
		t.Errorf("%d links ended as stalled", ended)
	}
}
