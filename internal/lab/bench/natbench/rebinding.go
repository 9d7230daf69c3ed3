package natbench

import (
	"context"
	"errors"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/viewer"
)

var rebindingFigures = []bench.Figure{
	{Name: "links_before", Unit: ""},
	{Name: "links_kept", Unit: "of 1", Goal: ">= 1"},
	{Name: "stalls", Unit: "", Goal: "<= 0"},
	{Name: "sessions_kept", Unit: "of 1", Goal: ">= 1"},
}

// afterwards is longer than a session takes to give a silent link up.
const afterwards = 30 * time.Second

// rebinding has a viewer behind a symmetric NAT link to the seed and to one with a public address that it offered to, and
// to one that offered to it. Then the NAT forgets all: what goes out has another port from then on.
func rebinding(ctx context.Context, r *bench.Run) (sample bench.Sample, err error) {
	s, err := build(ctx, r, []row{{a: public, b: symmetric}, {a: public, b: public}})
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	const title = "rebinding"
	play := func(i int, newcomer bool, label string) (*watcher, error) {
		host := s.pairs[i].a
		if newcomer {
			host = s.pairs[i].b
		}
		w, err := start(ctx, r, host, s.plain, s.plain.Addr, title, "rebinding-"+label)
		if err != nil {
			return nil, err
		}
		return w, w.until(ctx, "film", patience, func(s viewer.Summary) bool { return s.PositionMs > 2000 })
	}
	var all []*watcher
	defer func() {
		for _, w := range all {
			err = errors.Join(err, w.stop())
		}
	}()
	for i, label := range []string{"first", "behind", "last"} {
		w, err := play(i/2, i == 1, label)
		if w != nil {
			all = append(all, w)
		}
		if err != nil {
			return sample, err
		}
	}
	behind := all[1]
	if err := behind.until(ctx, "a link to each", patience, func(s viewer.Summary) bool { return s.Linked["viewer/direct"] == 2 && s.Linked["seed/direct"] == 1 }); err != nil {
		return sample, err
	}
	said, _ := behind.all()
	before := said[len(said)-1]
	if err := s.pairs[0].gateways[0].Forget(); err != nil {
		return sample, err
	}
	until := before.WatchedMs + afterwards.Milliseconds()
	if err := behind.until(ctx, "half a minute more", afterwards+patience, func(s viewer.Summary) bool { return s.WatchedMs >= until }); err != nil {
		return sample, err
	}
	said, _ = behind.all()
	return kept(r, before, said[len(said)-1]), nil
}

// kept compares what a viewer says before and after.
func kept(r *bench.Run, before, after viewer.Summary) bench.Sample {
	r.Logf("links %v, then %v; opened %d, then %d; closed %v; reconnects %d", before.Linked, after.Linked, before.LinksOpened, after.LinksOpened, after.LinksClosed, after.Reconnects)
	lost := 0
	for _, n := range after.LinksClosed {
		lost += n
	}
	session := 0.0
	if after.Session == before.Session {
		session = 1
	}
	return bench.Sample{Values: map[string]float64{
		"links_before": float64(before.Links), "links_kept": 1 - float64(lost)/float64(before.Links), "stalls": float64(after.Stats.Stalls), "sessions_kept": session,
	}}
}
