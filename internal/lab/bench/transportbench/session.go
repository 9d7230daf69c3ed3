package transportbench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// session plays the scenes of one run of a case, and collects what they measured.
type session struct {
	ctx    context.Context
	run    *bench.Run
	pages  *pages // which ends are in browsers
	values map[string]float64
	void   string
}

// measured makes the Run of a case.
func measured(measure func(*session) error) func(context.Context, *bench.Run) (bench.Sample, error) {
	return measuredIn(nil, measure)
}

// measuredIn is measured with ends in browsers.
func measuredIn(p *pages, measure func(*session) error) func(context.Context, *bench.Run) (bench.Sample, error) {
	return func(ctx context.Context, r *bench.Run) (bench.Sample, error) {
		s := &session{ctx: ctx, run: r, pages: p, values: map[string]float64{}}
		if err := measure(s); err != nil {
			return bench.Sample{}, err
		}
		return bench.Sample{Values: s.values, Void: s.void}, nil
	}
}

// yardsticks says whether this run is to measure what is no goal, too: bare data channels and RFC 6817's controller are there to be
// seen beside, and once is enough for that.
func (s *session) yardsticks() bool { return s.run.Claimed == 0 }

// atOnce is how many scenes may play at the same time: together they have no more than 20 Mbit/s, which costs this machine
// less than one of the faster scenes. Browsers want it for themselves.
func (s *session) atOnce(scenes []scene) int {
	most := len(scenes)
	for _, sc := range scenes {
		most = min(most, int(2*ten.Rate/sc.line.Rate))
	}
	if s.pages != nil {
		return 1
	}
	return max(most, 1)
}

// errPlanned ends a case whose scenes were only counted.
var errPlanned = errors.New("transport: nothing was played")

// planKey is what a context has the time under that a case would take: it is asked for what it would play, and plays nothing.
type planKey struct{}

// planned has a case tell how long a run of it takes.
func planned(c bench.Case) bench.Case {
	run := c.Run
	c.Takes = func(claimed int) time.Duration {
		var took time.Duration
		_, _ = run(context.WithValue(context.Background(), planKey{}, &took), &bench.Run{Claimed: claimed, Log: io.Discard}) // errPlanned
		return took
	}
	return c
}

// around is about what a scene takes beside its length: the lab, the links, what settles.
const around = 3 * time.Second

// lasts is how long scenes take together: each begins when there is a place for it.
func (s *session) lasts(scenes []scene) time.Duration {
	places := make([]time.Duration, s.atOnce(scenes))
	for _, i := range longestFirst(scenes) {
		slices.Sort(places)
		places[0] += scenes[i].length + around
	}
	return slices.Max(places)
}

// longestFirst is the order in which scenes begin, so that the last one does not play on by itself.
func longestFirst(scenes []scene) []int {
	order := make([]int, len(scenes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scenes[b].length, scenes[a].length) })
	return order
}

// play plays scenes that do not depend on each other, each in a lab of its own. A case calls it once.
func (s *session) play(scenes ...scene) ([]*record, error) {
	if took, ok := s.ctx.Value(planKey{}).(*time.Duration); ok {
		*took = s.lasts(scenes)
		return make([]*record, len(scenes)), errPlanned
	}
	records, failed := make([]*record, len(scenes)), make([]error, len(scenes))
	places := make(chan struct{}, s.atOnce(scenes))
	var mu sync.Mutex // of void, and of what is printed
	var wg sync.WaitGroup
	for _, i := range longestFirst(scenes) {
		sc := scenes[i]
		s.pages.in(&sc)
		places <- struct{}{}
		if s.ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-places }()
			log := &transcript{}
			r := *s.run
			r.Log = log
			rec, void, err := sc.play(s.ctx, &r)
			records[i], failed[i] = rec, err
			mu.Lock()
			defer mu.Unlock()
			s.run.Logf("%s", bytes.TrimRight(log.text.Bytes(), "\n"))
			if void != nil && s.void == "" {
				s.void = sc.name + ": " + void.Error()
			}
		})
	}
	wg.Wait()
	return records, errors.Join(append(failed, s.ctx.Err())...)
}

// transcript keeps the lines of scenes that play at the same time apart.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu until the scene is over
}

// Write implements io.Writer.
func (t *transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(b)
}

// one plays one scene.
func (s *session) one(sc scene) (*record, error) {
	all, err := s.play(sc)
	return all[0], err
}

// solo has a TCP flow alone on a line.
func solo(line netlab.Link, k kind, length time.Duration) scene {
	return scene{name: fmt.Sprintf("%s alone", k), line: line, length: length, flows: []flow{{kind: k}}}
}

// beside lets one flow have the line for a while and TCP come for another.
func beside(line netlab.Link, one, k kind, before, length time.Duration) scene {
	return scene{
		name: fmt.Sprintf("%s beside %s", k, one), line: line, length: before + length,
		flows: []flow{{kind: one}, {kind: k, from: before}},
	}
}

// kept is what TCP, the second flow, has of what it has alone, its beginning included.
func (r *record) kept(alone float64) float64 {
	return r.rate(r.scene.flows[1].from, r.scene.length, 1) / alone
}
