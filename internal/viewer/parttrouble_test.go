package viewer

import (
	"fmt"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// mishap is an audience of a stream in parts, and what it meets.
type mishap struct {
	crowd
	share  float64                      // that comes from eight viewers within 40 s, at least
	checks func(t *testing.T, s *scene) // beside that, of the audience with peers
}

// mishaps befall so many viewers amid a stream with parts of 500 ms at up to 0.94 Mbit/s.
func mishaps(viewers int, length, within time.Duration) map[string]mishap {
	of := func(share float64, change func(*crowd)) mishap {
		c := partCrowd(viewers, 2*time.Second, 4)
		c.length, c.within, c.thin = length, within, 2
		change(&c)
		return mishap{crowd: c, share: share}
	}
	amid := (length + within) / 2
	happens := func(share float64, f func(*scene)) mishap { return of(share, func(c *crowd) { c.happens = f }) }
	then := func(share float64, f func(*scene)) mishap {
		return happens(share, func(s *scene) { s.after(amid, func() { f(s) }) })
	}
	three := func(share float64, harm func(*node)) mishap {
		return of(share, func(c *crowd) {
			c.each = func(_ *scene, i int, a *actor) {
				if i %= 10; i == 0 || i == 3 || i == 6 {
					a.harms = true
					harm(a.node)
				}
			}
		})
	}
	pollute := three(0.5, func(n *node) { n.garble = flip })
	pollute.checks = eachIsOutAtOnce
	return map[string]mishap{
		"no seed, a packager signs": of(0.6, func(c *crowd) { c.signed = true }),
		"a flash crowd":             of(0.35, func(c *crowd) { c.arrive = flash(viewers) }),
		"the seed dies":             then(0.2, (*scene).seedDies),
		"the seed dies, a packager signs": happens(0.5, func(s *scene) {
			s.seed.parts.c.packaged()
			s.after(amid, s.seedDies)
		}),
		"a third dies": then(0.45, func(s *scene) {
			for i := 0; i < len(s.viewers); i += 3 {
				s.viewers[i].dies()
			}
		}),
		"the origin is five seconds late": happens(0.4, func(s *scene) {
			c, from, to := s.seed.parts.c, worldBegin.Add(amid), worldBegin.Add(amid+5*time.Second)
			c.late = func(seq, n int) time.Duration {
				if due := c.due(seq, n); due.Before(from) || due.After(to) {
					return 0
				}
				return to.Sub(c.due(seq, n))
			}
		}),
		"each tenth part is a part late": happens(0.55, func(s *scene) {
			c := s.seed.parts.c
			c.late = func(seq, n int) time.Duration {
				if (seq*c.each+n)%10 == 9 {
					return s.film.live.duration / time.Duration(c.each)
				}
				return 0
			}
		}),
		"three of ten pollute":            pollute,
		"three of ten send nothing":       three(0.4, func(n *node) { n.garble = lose }),
		"three of ten say they are seeds": three(0.4, func(n *node) { n.garble, n.says = lose, claimed }),
	}
}

// claimed makes what a node says of its place that of a seed with room for all, and of its children that it takes as many as it can say.
func claimed(b []byte) []byte {
	m, err := peer.DecodeParts(peer.Control, b)
	if err != nil {
		return b
	}
	switch one := m.(type) {
	case peer.Place:
		if one.Rank, one.Room, one.Least = 0, 255, 255; len(one.Path) == 0 {
			return b
		}
		one.Path = one.Path[len(one.Path)-1:]
		m = one
	case peer.Subscribe:
		one.Slots = 255
		m = one
	}
	if b, err = peer.Append(nil, m); err != nil {
		panic(err)
	}
	return b
}

// TestWhatHappensToAStreamInParts costs no stall that the origin alone does not have, and no byte that is wrong: each audience is played
// without peers, too.
func TestWhatHappensToAStreamInParts(t *testing.T) {
	testkit.InOneGoroutine(t)
	for name, m := range mishaps(8, 30*time.Second, 10*time.Second) {
		t.Run(name, func(t *testing.T) {
			// A stall of 4 s on a line of 5/1 Mbit/s is up to 50 ms longer or shorter with peers.
			s, more := m.servesItself(t, m.share, 0.0005)
			if more > 0 {
				t.Errorf("%d stalls more than without peers", more)
			}
			if m.checks != nil {
				m.checks(t, s)
			}
		})
	}
}

// BenchmarkPartTrouble plays more viewers for longer.
func BenchmarkPartTrouble(b *testing.B) {
	for viewers, traces := range map[int]uint64{12: 3, 30: 1} {
		for name, m := range mishaps(viewers, time.Minute, 30*time.Second) {
			b.Run(fmt.Sprintf("viewers=%d/%s", viewers, name), func(b *testing.B) { m.besideTheOrigin(b, traces) })
		}
	}
}
