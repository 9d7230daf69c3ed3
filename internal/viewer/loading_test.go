package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
)

// straight is an origin that answers at once, with as many bytes as the URL is long.
type straight struct{ unshared bool }

func (o straight) Get(f Fetch, _ func(int64), done func(Fetched, error)) func() {
	done(Fetched{Data: make([]byte, len(f.URL)), Unshared: o.unshared}, nil)
	return func() {}
}

func TestLoadingWithoutAnEngine(t *testing.T) {
	w, l := newWorld(), &ledger{}
	shares := true
	load := loading{
		loop: w, line: newLine(w, straight{}), ledger: l, engine: func() *engine { return nil }, shares: func() bool { return shares },
		reason: func() schedule.Reason { return "" },
	}
	got := 0
	ask := func() *pull {
		return load.load(request{Reference: Reference{URL: "/a.ts"}}, func(r *Result, err error) {
			if err != nil || r.Source != FromOrigin || r.Reason != schedule.NoHolder || r.Len() != 5 {
				t.Errorf("%+v, %v", r, err)
			}
			got++
		})
	}
	for range 2 * mostUncertified {
		ask()
	}
	ask().abort()
	w.run(time.Second)
	if got != 2*mostUncertified || len(load.early) != mostUncertified || l.total.Bytes["origin"] != int64(5*got) {
		t.Errorf("%d came, %d are kept, %v", got, len(load.early), l.total.Bytes)
	}
	shares, load.early = false, nil
	ask()
	w.run(time.Second)
	load.line.origin, shares = straight{unshared: true}, true
	ask()
	w.run(time.Second)
	if len(load.early) != 0 {
		t.Error("kept what no engine may share")
	}
}
