package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/parts"
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

// TestAPartThatIsTakenBackAsItComesIsNotGiven: a player that seeks just then asks for another, and would take it for that.
func TestAPartThatIsTakenBackAsItComesIsNotGiven(t *testing.T) {
	r := newPartRig(t)
	load := loading{loop: r.w, line: r.line, ledger: r.ledger, engine: func() *engine { return r.engine }}
	turn, _ := parts.Turn(7, 0)
	ref := Reference{URL: partURL(0), Duration: partDuration}
	given := 0
	p := load.load(request{
		Reference: ref, playlist: "http://film.test/live/index.m3u8", live: true, part: true, turn: turn, parts: []listedPart{{turn, ref}}, bitrate: 2_000_000,
		deadline: func() time.Duration { return time.Second },
	}, func(*Result, error) { given++ })
	r.w.run(time.Millisecond)
	r.answers[0](Fetched{Data: media(2)}, nil)
	r.w.Post(p.abort)
	r.w.run(time.Millisecond)
	if given > 0 {
		t.Error("it is given")
	}
}
