package viewer

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"
)

// scene is a world with a film, a tracker, a seed and viewers.
type scene struct {
	t       testing.TB
	w       *world
	film    *film
	tracker *simTracker
	seed    *simSeed
	viewers []*actor
	drowsy  bool                // viewers that come may sleep
	wrap    func(origin) Origin // what viewers that come have for an origin; nil: itself
}

// actor is one viewer of a scene.
type actor struct {
	*Viewer
	node    *node
	results []*Result
	came    []time.Time // of results
	line    string      // what it is called
	wrong   int
	harms   bool // it is no honest viewer: what comes of it counts for nothing
	notices []string
	ports   Ports
	sleeper *sleeper
}

// access is a viewer's line: bytes per second, and the delay to the core, half of oneWay if none is given.
type access struct {
	up, down float64
	delay    time.Duration
}

var fast = access{up: 12.5e6, down: 12.5e6}

func newScene(t testing.TB, f func(*world) *film) *scene {
	s := &scene{t: t, w: newWorld()}
	s.film = f(s.w)
	s.tracker = newTracker(s.w, s.film)
	s.seed = newSeed(s.w, s.film, 12.5e6)
	s.tracker.seed = s.seed
	return s
}

// viewer starts one more viewer.
func (s *scene) viewer(l access, change func(*Config)) *actor {
	s.t.Helper()
	n := len(s.viewers)
	a := &actor{node: newNode(s.w, fmt.Sprintf("viewer %d", n), l.up, l.down)}
	if l.delay > 0 {
		a.node.delay = l.delay
	}
	cfg := Config{
		URL: filmURL, Tracker: "ws://tracker.test/", Rand: rand.New(rand.NewPCG(1, uint64(n))),
		OnNotice: func(code, _ string) { a.notices = append(a.notices, code) },
		OnSegment: func(r *Result) {
			a.results, a.came = append(a.results, r), append(a.came, s.w.now)
			if !s.film.correct(r) {
				a.wrong++
			}
		},
	}
	if change != nil {
		change(&cfg)
	}
	a.ports = Ports{Loop: s.w, Dialer: s.tracker, Links: a.node, Origin: origin{s.film, a.node}}
	if s.drowsy {
		a.sleeper = &sleeper{world: s.w}
		a.ports.Loop = a.sleeper
	}
	if s.wrap != nil {
		a.ports.Origin = s.wrap(origin{s.film, a.node})
	}
	v, err := Start(cfg, a.ports)
	if err != nil {
		s.t.Fatal(err)
	}
	a.Viewer = v
	s.viewers = append(s.viewers, a)
	return a
}

// summary of a viewer as things stand.
func (a *actor) now() Summary { return a.summary() }

func (a *actor) isDone() bool {
	select {
	case <-a.Done():
		return true
	default:
		return false
	}
}

// check fails the test unless every viewer has ended well, with every byte as the origin has it.
func (s *scene) check() {
	s.t.Helper()
	for i, a := range s.viewers {
		sum := a.now()
		if !a.isDone() || a.Err() != nil || a.wrong > 0 {
			text, _ := json.Marshal(sum)
			s.t.Errorf("viewer %d: done %v, %v, %d wrong segments: %s", i, a.isDone(), a.Err(), a.wrong, text)
		}
	}
}

// seedDies without a word, and is introduced no more.
func (s *scene) seedDies() {
	s.seed.node.net++ // nothing comes from it any more
	s.tracker.seed = nil
}

// dies is a viewer that is gone without a word.
func (a *actor) dies() {
	a.node.net++
	a.Leave()
}

// bytes sums what the viewers got from a source.
func (s *scene) bytes(from string) int64 {
	n := int64(0)
	for _, a := range s.viewers {
		n += a.now().Stats.Bytes[from]
	}
	return n
}

func fourSeconds(n int, sizes ...int) func(*world) *film {
	return func(w *world) *film { return newFilm(w, n, 4*time.Second, sizes...) }
}

// run of four viewers that join five seconds apart; what it recorded goes to w.
func fourViewers(t *testing.T, record io.Writer, l access) *scene {
	s := newScene(t, fourSeconds(20, 750_000))
	for i := range 4 {
		s.viewer(l, func(c *Config) {
			if i == 1 {
				c.Record = record
			}
		})
		s.w.run(5 * time.Second)
	}
	s.w.run(100 * time.Second)
	return s
}
