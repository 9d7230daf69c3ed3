package viewer

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/swarm"
)

// crowd is an audience of a broadcast.
type crowd struct {
	viewers        int
	segment        time.Duration
	window         int // segments
	length, within time.Duration
	watch          time.Duration // a viewer leaves after it; 0: at the end
	seed           uint64
	alone          bool
	signed         bool          // a packager signs the stream; one of chunks or parts then has no seed
	thin           float64       // so many times fewer bytes are played; 0: as many as there are
	audio          int           // bytes a second of a sound that is apart; 0: it is with the pictures
	lines          []homes       // nil: homeLines
	far            time.Duration // from the seed to the core
	chunks         int           // of a segment, which is played while it is made; 0: it is not
	parts          int           // of a segment, which the playlist lists as they are made; 0: it lists segments
	circumstances
}

// circumstances are what an audience meets.
type circumstances struct {
	visit   time.Duration                    // a viewer leaves after it, and another one comes with the same line; 0: none does
	arrive  func(i int) time.Duration        // nil: by chance
	happens func(s *scene)                   // before the first viewer comes
	config  func(s *scene, i int, c *Config) // of the i-th viewer
	each    func(s *scene, i int, a *actor)  // what becomes of the i-th viewer's line
}

// aired is what came of it, of its honest viewers.
type aired struct {
	tally
	lag    float64 // s
	origin float64 // its share of all bytes
	leaps  int
}

func (c crowd) play(t testing.TB) (*scene, aired) {
	per := c.segment.Seconds() / 2 / cmp.Or(c.thin, 1)
	sizes := []int{int(121_431 * per), int(253_067 * per), int(469_340 * per)}
	s := newScene(t, func(w *world) *film {
		if c.audio > 0 {
			sizes = append(sizes, int(float64(c.audio)*c.segment.Seconds()))
		}
		f := newBroadcast(w, c.segment, c.window, c.window+int((c.length+c.within)/c.segment)+60, shape, sizes...)
		if c.audio > 0 {
			f.apart()
		}
		if c.chunks > 0 {
			f.live.mpd = lowLatencyMPD(f.live, c.chunks, sizes...)
		}
		return f
	})
	var byChunks *chunkStream
	switch {
	case c.chunks > 0:
		byChunks = s.byChunks(c.chunks)
	case c.parts > 0:
		byChunks = s.pushesParts(c.parts)
	}
	s.film.node.delay, s.seed.node.delay = 0, c.far
	s.film.node.up.Rate, s.seed.node.up.Rate = 125e6, 125e6
	s.tracker.home = swarm.New()
	switch {
	case c.signed && byChunks != nil:
		byChunks.packaged()
		s.unseeded()
	case c.signed:
		s.film.live.signed = map[string][]byte{}
		s.tracker.keys = append(s.tracker.keys, packagerVerifyKey())
	}
	if c.lines == nil {
		c.lines = homeLines
	}
	if c.happens != nil {
		c.happens(s)
	}
	a := audience{viewers: c.viewers, film: c.length, within: c.within, seed: c.seed, lines: c.lines}
	for i, p := range a.plans() {
		if c.arrive != nil {
			p.arrive = c.arrive(i)
		}
		s.w.run(p.arrive - s.w.now.Sub(worldBegin))
		c.comes(s, p)
	}
	s.w.run(c.length + c.within + 10*time.Second - s.w.now.Sub(worldBegin))
	s.check()
	s.viewers = slices.DeleteFunc(s.viewers, func(v *actor) bool { return v.harms })
	return s, s.aired()
}

func (s *scene) aired() aired {
	out := aired{tally: s.tally()}
	for _, v := range s.viewers {
		sum := v.now()
		out.lag += float64(sum.LatencyMs) / 1000 / float64(len(s.viewers))
		out.leaps += sum.Leaps
	}
	out.origin = float64(s.bytes("origin")) / float64(s.bytes("origin")+s.bytes("seed")+s.bytes("peer"))
	return out
}

// comes has a viewer come.
func (c crowd) comes(s *scene, p plan) {
	i, left := len(s.viewers), c.length+c.within-p.arrive
	v := s.viewer(c.lines[p.line].access, func(cfg *Config) {
		cfg.Leave = left
		for _, d := range []time.Duration{p.leaveAfter, c.watch, c.visit} {
			if d > 0 {
				cfg.Leave = min(cfg.Leave, d)
			}
		}
		if c.chunks > 0 {
			lowDASH(cfg)
			cfg.Rendition = "highest" // what is sent as it is made measures no line
		}
		if c.parts > 0 {
			cfg.LowLatency = true
		}
		if c.alone {
			cfg.Tracker = ""
		}
		if c.config != nil {
			c.config(s, i, cfg)
		}
	})
	v.line = c.lines[p.line].name
	if c.each != nil {
		c.each(s, i, v)
	}
	if c.visit > 0 && left > c.visit+5*time.Second {
		s.w.After(c.visit, func() {
			p.arrive += c.visit
			c.comes(s, p)
		})
	}
}

func (a *aired) add(_ *scene, o aired) {
	a.tally.add(o.tally, 1)
	a.lag += o.lag
	a.origin += o.origin
	a.leaps += o.leaps
}
