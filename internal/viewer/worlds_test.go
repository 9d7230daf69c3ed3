package viewer

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// worlds are what audiences of a live stream meet (docs/experiments/worlds.md).
func worlds() map[string]crowd {
	of := func(change func(*crowd)) crowd {
		c := crowd{viewers: *liveViewers, segment: *liveSegment, window: 12, length: time.Minute, within: 20 * time.Second}
		change(&c)
		return c
	}
	happens := func(f func(*scene)) crowd { return of(func(c *crowd) { c.happens = f }) }
	on := func(up, down float64, delay time.Duration, each func(*scene, int, *actor)) crowd {
		return of(func(c *crowd) {
			c.lines, c.each = []homes{{"all", 1, access{up: up / 8, down: down / 8, delay: delay}}}, each
		})
	}
	behind := func(signed bool) crowd {
		return of(func(c *crowd) {
			c.window, c.signed = 300, signed
			c.config = func(_ *scene, i int, g *Config) {
				if i%2 == 1 {
					g.Seeks = []Seek{{After: 5 * time.Second, To: time.Duration(20+i*37%540) * time.Second}}
				}
			}
		})
	}
	dice := rand.New(rand.NewPCG(1, 1))
	return map[string]crowd{
		"plain":        of(func(*crowd) {}),
		"visits-20s":   of(func(c *crowd) { c.visit = 20 * time.Second }),
		"dvr":          behind(false),
		"dvr-signed":   behind(true),
		"window-3":     of(func(c *crowd) { c.window = 3 }),
		"target-twice": happens(func(s *scene) { s.film.live.target = 2 * int(s.film.live.duration.Seconds()) }),
		"bursts":       happens(inBursts),
		"keyframes":    of(func(c *crowd) { c.segment, c.happens = 4*time.Second, atKeyframes }),
		"gaps":         happens(gaps),
		"adverts":      happens(adverts),
		"tongues":      of(func(c *crowd) { c.audio, c.happens = 16_000, tongues }),
		"pause": of(func(c *crowd) {
			c.window = 60
			c.config = func(_ *scene, i int, g *Config) {
				if i%2 == 0 {
					g.Pauses, g.CatchUp = []Pause{{After: 20 * time.Second, For: 30 * time.Second}}, 1.5
				}
			}
		}),
		"highlight": of(func(c *crowd) {
			c.window = 150
			c.config = func(s *scene, _ int, g *Config) {
				g.Seeks = []Seek{{After: worldBegin.Add(time.Minute).Sub(s.w.now), To: 200 * time.Second}}
			}
		}),
		"wide":         on(50e6, 1000e6, 5*time.Millisecond, nil),
		"lossy":        on(5e6, 50e6, 15*time.Millisecond, loses),
		"flapping":     on(5e6, 20e6, 15*time.Millisecond, flaps),
		"thin-uplinks": on(256e3, 20e6, 15*time.Millisecond, nil),
		"far": of(func(c *crowd) {
			c.lines, c.far = []homes{{"all", 1, access{up: 625_000, down: 2_500_000, delay: 75 * time.Millisecond}}}, 75*time.Millisecond
		}),
		"bloated":     of(func(c *crowd) { c.each = bloated }),
		"half-linked": of(func(c *crowd) { c.each = halfLinked }),
		"thin-seed":   happens(func(s *scene) { s.seed.node.up.Rate, s.seed.node.down.Rate = 250_000, 250_000 }),
		"late-seed":   happens(func(s *scene) { s.film.live.seedLate = 2 * time.Second }),
		"new-seeds":   happens(restarts),
		"no-seed":     of(func(c *crowd) { c.signed, c.happens = true, func(s *scene) { s.tracker.seed = nil } }),
		"late-origin": happens(answersLate),
		"fails":       happens(fails),
		"limits":      happens(limits),
		"old-lists":   happens(stale(func(viewer int) int { return viewer % 3 })),
		"mixed-lists": happens(stale(func(int) int { return dice.IntN(3) })),
	}
}

// BenchmarkLiveWorlds plays an audience in each world, with peers and by the origin alone.
func BenchmarkLiveWorlds(b *testing.B) {
	for name, c := range worlds() {
		b.Run(fmt.Sprint("world=", name), func(b *testing.B) {
			var with, alone aired
			for b.Loop() {
				for n := range *mostTraces {
					c.seed, c.alone = *firstTrace+n, false
					with.add(c.play(b))
					c.alone = true
					alone.add(c.play(b))
				}
			}
			n := float64(*mostTraces)
			b.ReportMetric(with.offload/n, "offload_ratio")
			b.ReportMetric(with.saved/n, "egress_saved_ratio")
			b.ReportMetric(with.duplicates/n, "twice_ratio")
			b.ReportMetric(with.requests/n, "requests")
			b.ReportMetric(alone.requests/n, "requests_alone")
			b.ReportMetric((with.stall-alone.stall)/n, "stall_added_ratio")
			b.ReportMetric(float64(with.stalls-alone.stalls), "stalls_added")
			b.ReportMetric(float64(alone.stalls), "stalls_alone")
			b.ReportMetric((with.lag-alone.lag)/n, "lag_added_seconds")
			b.ReportMetric((with.startup-alone.startup)/n, "startup_added_seconds")
			b.ReportMetric(with.bitrate/alone.bitrate, "mean_bitrate_vs_origin_only")
		})
	}
}
