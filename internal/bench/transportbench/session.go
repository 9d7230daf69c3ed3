package transportbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/bench"
	"github.com/leeway-video/leeway/internal/netlab"
)

// session plays the scenes of one run of a case, and collects what they measured.
type session struct {
	ctx    context.Context
	run    *bench.Run
	pages  pages // which ends are in browsers
	values map[string]float64
	void   string
}

// measured makes the Run of a case.
func measured(measure func(*session) error) func(context.Context, *bench.Run) (bench.Sample, error) {
	return measuredIn(nil, measure)
}

// measuredIn is measured with ends in browsers.
func measuredIn(p pages, measure func(*session) error) func(context.Context, *bench.Run) (bench.Sample, error) {
	return func(ctx context.Context, r *bench.Run) (bench.Sample, error) {
		s := &session{ctx: ctx, run: r, pages: p, values: map[string]float64{}}
		if err := measure(s); err != nil {
			return bench.Sample{}, err
		}
		return bench.Sample{Values: s.values, Void: s.void}, nil
	}
}

// yardsticks says whether this run is to measure what is no goal, too: bare data channels and RFC 6817's law are there to be
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

// play plays scenes that do not depend on each other, each in a lab of its own.
func (s *session) play(scenes ...scene) ([]*record, error) {
	records, failed := make([]*record, len(scenes)), make([]error, len(scenes))
	places := make(chan struct{}, s.atOnce(scenes))
	var mu sync.Mutex // of void, and of what is printed
	var wg sync.WaitGroup
	for i, sc := range scenes {
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
