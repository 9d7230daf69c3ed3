package doctor_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/doctor"
)

// trimmed is a film of so many segments, each so long.
func trimmed(t *testing.T, segments int, seconds float64) *film {
	return newFilm(t, func(f *film) {
		f.seconds = seconds
		for i := segments; i < length; i++ {
			delete(f.segments, fmt.Sprintf("seg-%d.ts", i))
		}
	})
}

// TestShortFilms: a healthy set-up is healthy with a film that a viewer could have whole before there is a link,
// and with long segments, which are urgent when little is buffered.
func TestShortFilms(t *testing.T) {
	films := []*film{trimmed(t, 10, 1), trimmed(t, 3, 4), trimmed(t, 20, 10), trimmed(t, 7, 6), trimmed(t, 2, 4)}
	dir, nats, admin, public, seedAdmin := t.TempDir(), freePort(t), freePort(t), freePort(t), freePort(t)
	var sites []any
	for i, f := range films {
		sites = append(sites, f.site(fmt.Sprintf("short%d", i), nil))
	}
	service(t, admin, "tracker", "--config", written(t, map[string]any{"sites": sites, "nats": map[string]any{"listen": nats},
		"tracker": map[string]any{"listen": public, "admin": admin, "data_dir": filepath.Join(dir, "tracker")}}))
	service(t, seedAdmin, "seed", "--config", written(t, map[string]any{"sites": sites, "nats": map[string]any{"url": "nats://" + nats},
		"seed": map[string]any{"listen": "127.0.0.1:0", "admin": seedAdmin, "data_dir": filepath.Join(dir, "seed")}}))
	for i, f := range films {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			r := doctor.Examine(t.Context(), doctor.Config{Manifest: f.manifest(), Tracker: "ws://" + public + "/", Patience: 20 * time.Second}, nil)
			want := doctor.OK
			if len(f.segments) < 3 {
				want = doctor.Skip
			}
			if at := slices.IndexFunc(r.Findings, func(x doctor.Finding) bool { return x.Check == "piece" }); r.Findings[at].Status != want {
				t.Errorf("%d segments of %g s: %+v", len(f.segments), f.seconds, r.Findings[at])
			}
		})
	}
}
