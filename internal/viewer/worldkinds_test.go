package viewer

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"sort"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// uneven is when the segments of a broadcast begin, and when they are published.
type uneven struct{ begins, published []time.Time }

func (u *uneven) edge(now time.Time) int {
	return sort.Search(len(u.published)-1, func(i int) bool { return u.published[i].After(now) })
}

// lasting has segments play for so long in turn. They are published as they end, or later.
func (b *broadcast) lasting(lengths []time.Duration, late func(seq int) time.Duration) {
	at := worldBegin.Add(-time.Duration(b.window) * b.duration)
	b.uneven = &uneven{begins: []time.Time{at}}
	for seq := range b.ends + 1 {
		at = at.Add(lengths[seq%len(lengths)])
		b.uneven.begins = append(b.uneven.begins, at)
		b.uneven.published = append(b.uneven.published, at.Add(late(seq)))
	}
}

// inBursts: of ten segments the first comes together with the two that follow.
func inBursts(s *scene) {
	d := s.film.live.duration
	s.film.live.lasting([]time.Duration{d}, func(seq int) time.Duration { return time.Duration(max(0, 2-seq%10)) * d })
}

// atKeyframes has a packager cut segments of 1.2 to 4 s, where a picture needs no other.
func atKeyframes(s *scene) {
	b, most := s.film.live, 4*time.Second
	lengths := []time.Duration{most, 1200 * time.Millisecond, 2400 * time.Millisecond, 3600 * time.Millisecond, 1200 * time.Millisecond, 1200 * time.Millisecond, 2 * time.Second}
	b.lasting(lengths, func(int) time.Duration { return 0 })
	for name, data := range s.film.files {
		var r, seq int
		if n, _ := fmt.Sscanf(name, "/media/film/%d/seg-%d.ts", &r, &seq); n == 2 {
			s.film.files[name] = data[:int(float64(len(data))*float64(lengths[seq%len(lengths)])/float64(most))]
		}
	}
}

// hooked is an origin behind what treats requests in its own way.
type hooked struct {
	origin
	get func(o origin, f Fetch, progress func(int64), done func(Fetched, error)) func()
}

func (h hooked) Get(f Fetch, progress func(int64), done func(Fetched, error)) func() {
	return h.get(h.origin, f, progress, done)
}

// through has requests of viewers treated so. It says whether a request is refused, and how late it reaches the origin.
func through(s *scene, treat func(media bool) (refused bool, late time.Duration)) {
	before := s.wrap
	s.wrap = func(o origin) Origin {
		to := Origin(o)
		if before != nil {
			to = before(o)
		}
		return hooked{o, func(o origin, f Fetch, progress func(int64), done func(Fetched, error)) func() {
			refused, late := treat(strings.HasSuffix(f.URL, ".ts"))
			if refused {
				return o.node.w.After(3*o.film.node.away(o.node), func() { done(Fetched{}, errors.New("the origin refuses")) })
			}
			stopped, cancel := false, func() {}
			o.node.w.After(late, func() {
				if !stopped {
					cancel = to.Get(f, progress, done)
				}
			})
			return func() {
				stopped = true
				cancel()
			}
		}}
	}
}

// answersLate has the origin answer each third request a second later.
func answersLate(s *scene) {
	n := 0
	through(s, func(bool) (bool, time.Duration) {
		n++
		return false, time.Duration(max(0, n%3-1)) * time.Second
	})
}

// fails has each fourth request fail.
func fails(s *scene) {
	n := 0
	through(s, func(media bool) (bool, time.Duration) {
		if media {
			n++
		}
		return media && n%4 == 0, 0
	})
}

// limits has an origin answer four requests a second, of all viewers.
func limits(s *scene) {
	const rate = 4
	tokens, last := 2.0*rate, worldBegin
	through(s, func(media bool) (bool, time.Duration) {
		if !media {
			return false, 0
		}
		tokens, last = min(2*rate, tokens+rate*s.w.now.Sub(last).Seconds()), s.w.now
		if tokens < 1 {
			return true, 0
		}
		tokens--
		return false, 0
	})
}

// listed has each playlist of a viewer changed.
func listed(s *scene, change func(viewer, r int, list []byte) []byte) {
	s.wrap = func(o origin) Origin {
		viewer := len(s.viewers)
		return hooked{o, func(o origin, f Fetch, progress func(int64), done func(Fetched, error)) func() {
			return o.Get(f, progress, func(got Fetched, err error) {
				var r int
				if n, _ := fmt.Sscanf(path(f.URL), "/media/film/%d/", &r); n == 1 && err == nil && strings.HasSuffix(f.URL, "index.m3u8") {
					got.Data = change(viewer, r, got.Data)
				}
				done(got, err)
			})
		}}
	}
}

// stale shows playlists of so many segments ago.
func stale(age func(viewer int) int) func(s *scene) {
	return func(s *scene) {
		b := s.film.live
		listed(s, func(viewer, r int, _ []byte) []byte {
			b.stale = func(_, now int) int { return now - age(viewer) }
			defer func() { b.stale = nil }()
			return b.list(r)
		})
	}
}

// adverts: of each minute half is a viewer's own, behind a discontinuity.
func adverts(s *scene) {
	const block = 15
	s.film.live.breaks = map[int]bool{}
	for seq := range s.film.live.ends {
		s.film.live.breaks[seq] = seq%block == 0
	}
	listed(s, func(n, r int, list []byte) []byte {
		viewer := fmt.Sprint(n)
		for _, line := range strings.Split(string(list), "\n") {
			var seq int
			if n, _ := fmt.Sscanf(line, "seg-%d.ts", &seq); n != 1 || seq/block%2 == 0 {
				continue
			}
			of := fmt.Sprintf("/media/film/%d/", r)
			if s.film.files[of+advert(viewer, seq)] == nil {
				own := bytes.Clone(s.film.files[of+line])
				copy(own, viewer)
				s.film.files[of+advert(viewer, seq)] = own
			}
			list = bytes.Replace(list, []byte("\n"+line+"\n"), []byte("\n"+advert(viewer, seq)+"\n"), 1)
		}
		return list
	})
}

// gaps: each tenth segment has no media.
func gaps(s *scene) {
	var all []int
	for seq := 15; seq < s.film.live.ends; seq += 10 {
		all = append(all, seq)
	}
	s.wrap = func(o origin) Origin { return gapped{o, all} }
}

// tongues gives viewers one of four sounds in turn.
func tongues(s *scene) {
	const sound = 3 // the rendition behind the pictures
	for name, data := range s.film.files {
		var r, seq int
		if n, _ := fmt.Sscanf(name, "/media/film/%d/seg-%d.ts", &r, &seq); n != 2 || r != sound {
			continue
		}
		for other := 1; other < 4; other++ {
			own := bytes.Clone(data)
			copy(own, fmt.Sprint(other))
			s.film.files[fmt.Sprintf("/media/film/%d/seg-%d.ts", sound+other, seq)] = own
		}
	}
	s.seed.names = s.film.names()
	s.wrap = func(o origin) Origin {
		own := fmt.Sprintf("\"%d/index", sound+len(s.viewers)%4)
		return hooked{o, func(o origin, f Fetch, progress func(int64), done func(Fetched, error)) func() {
			return o.Get(f, progress, func(got Fetched, err error) {
				if strings.HasSuffix(f.URL, "master.m3u8") {
					got.Data = bytes.Replace(got.Data, fmt.Appendf(nil, "\"%d/index", sound), []byte(own), 1)
				}
				done(got, err)
			})
		}}
	}
}

// halfLinked: of each two pairs of viewers one cannot be linked.
func halfLinked(_ *scene, _ int, a *actor) {
	a.node.blocks = func(to *node) bool {
		h := fnv.New32a()
		_, _ = fmt.Fprint(h, min(a.node.name, to.name), "|", max(a.node.name, to.name))
		v := h.Sum32()
		return to.name != "seed" && (v^v>>16)*0x85ebca6b>>31 == 0
	}
}

// bloated: the router of a viewer's line holds a second of what it sends.
func bloated(s *scene, _ int, a *actor) {
	if s.w.routers == nil {
		s.w.routers = map[*testkit.Line]int{}
	}
	s.w.routers[&a.node.up] = int(a.node.up.Rate)
}

// crossed has other traffic take nine tenths of a line, both ways: so long of each period, from its first on.
func crossed(s *scene, a *actor, first, long, period time.Duration) {
	const step = 20 * time.Millisecond
	begun := s.w.now.Add(first)
	var look func()
	look = func() {
		if since := s.w.now.Sub(begun); since >= 0 && since%period < long {
			for _, l := range []*testkit.Line{&a.node.up, &a.node.down} {
				l.Pass(s.w.now, int(0.9*l.Rate*step.Seconds()))
			}
		}
		s.w.After(step, look)
	}
	look()
}

// flaps: the line carries a tenth of 20/5 Mbit/s for 10 s, and all of it for 10 s.
func flaps(s *scene, i int, a *actor) {
	crossed(s, a, time.Duration(i*7%20)*time.Second, 10*time.Second, 20*time.Second)
}

// loses: each 3 s the line carries a tenth for 0.6 s.
func loses(s *scene, i int, a *actor) {
	crossed(s, a, time.Duration(i)*211*time.Millisecond, 600*time.Millisecond, 3*time.Second+time.Duration(i%7)*100*time.Millisecond)
}

// restarts has another seed come each 40 s, 2 s after the one before has gone without a word.
func restarts(s *scene) {
	s.w.After(40*time.Second, func() {
		s.seedDies()
		next := newSeed(s.w, s.film, s.seed.node.up.Rate)
		next.node.delay, next.id = s.seed.node.delay, signal.ID{0xff, s.seed.id[1] + 1}
		s.seed = next
		s.w.After(2*time.Second, func() {
			s.tracker.seed = next
			s.tracker.everyone(&signal.Introduce{Swarm: swarmID, Peers: []signal.Peer{{Peer: next.id, Role: "seed"}}})
		})
		restarts(s)
	})
}
