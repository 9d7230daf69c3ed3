package viewer

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
)

// odd is an origin that treats requests for parts in its own way.
type odd struct {
	origin
	part func(Fetch) (Fetch, error)
}

func (o odd) Get(f Fetch, progress func(int64), done func(Fetched, error)) func() {
	if f.Ranged && strings.HasSuffix(f.URL, ".ts") {
		var err error
		if f, err = o.part(f); err != nil {
			o.node.w.Post(func() { done(Fetched{}, err) })
			return func() {}
		}
	}
	return o.origin.Get(f, progress, done)
}

// TestTheOriginIsAskedForWhatIsLeft has a viewer whose only peer brings a part of each segment by the time that it is
// urgent.
func TestTheOriginIsAskedForWhatIsLeft(t *testing.T) {
	const segments, size = 16, 1_000_000
	for name, c := range map[string]struct {
		part  func(Fetch) (Fetch, error)
		twice bool
	}{
		"parts":       {part: func(f Fetch) (Fetch, error) { return f, nil }},
		"no parts":    {part: func(Fetch) (Fetch, error) { return Fetch{}, errors.New("416") }, twice: true},
		"wholes":      {part: func(f Fetch) (Fetch, error) { return Fetch{URL: f.URL}, nil }, twice: true},
		"other parts": {part: func(f Fetch) (Fetch, error) { f.First, f.Last = f.First-1, f.Last-1; return f, nil }, twice: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, fourSeconds(segments, size))
			first := s.viewer(access{up: 60_000, down: 4e6}, nil)
			s.w.run(6 * time.Second)
			s.tracker.seed = nil
			asked := 0
			s.wrap = func(o origin) Origin {
				return odd{o, func(f Fetch) (Fetch, error) { asked++; return c.part(f) }}
			}
			late := s.viewer(access{up: 60_000, down: 4e6}, nil)
			s.w.run(80 * time.Second)
			s.check()
			st := late.now().Stats
			if len(first.results) != segments || len(late.results) != segments || st.Stalls > 0 {
				t.Fatalf("%d and %d segments, %d stalls", len(first.results), len(late.results), st.Stalls)
			}
			// The last piece of the first segment proves the peer. It comes after the origin's, and counts as a duplicate alone.
			got := st.Bytes["peer"] + st.Bytes["origin"] - st.DuplicateBytes
			if got != segments*size-size%segment.PieceSize || st.Bytes["peer"] < size/2 {
				t.Errorf("%d bytes that were needed, %v", got, st.Bytes)
			}
			if twice := st.DuplicateBytes > size/4; twice != c.twice {
				t.Errorf("%d bytes twice, %d parts asked for", st.DuplicateBytes, asked)
			}
			if c.twice != (asked == 1) {
				t.Errorf("%d parts were asked for", asked)
			}
		})
	}
}
