package viewer

import (
	"testing"
	"time"
)

// strict is an origin whose responses say that they are not to be stored.
type strict struct{ origin }

func (o strict) Get(f Fetch, progress func(int64), done func(Fetched, error)) func() {
	return o.origin.Get(f, progress, func(got Fetched, err error) {
		got.Unshared = true
		done(got, err)
	})
}

// TestWhatTheOriginWantsNotStoredIsPlayedAndNotKept: it comes from before the engine is there, and beside a seed that is slow.
func TestWhatTheOriginWantsNotStoredIsPlayedAndNotKept(t *testing.T) {
	const segments, size = 16, 300_000
	s := newScene(t, fourSeconds(segments, size))
	s.wrap = func(o origin) Origin { return strict{o} }
	s.seed.node.up.Rate = 30_000 // below the bitrate: some segments are the origin's
	a := s.viewer(access{up: 1e6, down: 4e6}, nil)
	s.w.run(40 * time.Second)
	st := a.now().Stats
	if len(a.results) < 8 || a.wrong > 0 || st.Stalls > 0 || st.Bytes["origin"] < size {
		t.Fatalf("%d segments, %d stalls, %v", len(a.results), st.Stalls, st.Bytes)
	}
	e, held := a.title.engine, int64(0)
	for _, id := range e.store.ids() {
		for _, p := range e.store.get(id).pieces {
			held += int64(len(p))
		}
	}
	if held == 0 || held > st.Bytes["seed"] {
		t.Errorf("%d bytes are held, the seed sent %d and the origin %d", held, st.Bytes["seed"], st.Bytes["origin"])
	}
}
