package tracker

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func testAudience(t *testing.T, secret string, named bool) *audience {
	t.Helper()
	cfg := &Config{Secret: []byte(strings.Repeat(secret, 32)), Sites: oneSite(t, configured.Config{}), TitleNames: named}
	k := newSecrets(cfg)
	return newAudience(cfg, &k)
}

// told is what a scrape sees, by metric and labels.
func told(c func(func(*metric.Def, float64, ...string))) map[string]float64 {
	all := map[string]float64{}
	c(func(d *metric.Def, v float64, labels ...string) {
		name := d.Name + "{" + strings.Join(labels, ",") + "}"
		if _, twice := all[name]; twice {
			panic("told twice: " + name)
		}
		all[name] = v
	})
	return all
}

// titles are the labels that a scrape has.
func (a *audience) titles() (all []string) {
	for _, title := range a.deliveries()[0].Titles {
		all = append(all, title.Label)
	}
	return all
}

func title(i int) string { return fmt.Sprintf("/film/%d", i) }

// enter adds so many viewers to a title, or takes them out.
func (a *audience) enter(n int, title string, now time.Time) {
	for range max(n, -n) {
		a.count("demo", title, n/max(n, -n), now)
	}
}

// TestTitlesAreBounded: whatever is watched, ten titles of a site are told apart, and nothing is kept of what has no viewers.
func TestTitlesAreBounded(t *testing.T) {
	a, now := testAudience(t, "s", false), time.Unix(0, 0)
	const many = 1000
	for i := range many {
		a.enter(1+i%7, title(i), now)
		a.report("demo", title(i), &received{1}, nil)
	}
	d := a.deliveries()[0]
	viewers, bytes := 0, int64(0)
	for _, one := range d.Titles {
		viewers += one.Viewers
		bytes += one.Bytes["origin"]
	}
	if len(d.Titles) != busiest+1 || viewers != d.Viewers || bytes < many-busiest || bytes > many || d.Bytes["origin"] != many {
		t.Errorf("%d titles of %d viewers and %d bytes, the site has %d and %d", len(d.Titles), viewers, bytes, d.Viewers, d.Bytes["origin"])
	}
	if series := told(a.collect); len(series) != (busiest+1)*(1+len(receptions)) {
		t.Errorf("%d series", len(series))
	}
	for i := range many {
		a.enter(-1-i%7, title(i), now)
	}
	if got := a.titles(); len(got) != busiest+1 {
		t.Errorf("the last figures are gone before they are collected: %v", got)
	}
	a.maintain(now.Add(placeLeft))
	if got := a.titles(); len(got) != 1 || len(a.sites["demo"].crowds) != 0 {
		t.Errorf("nothing is watched, and there are %v and %d titles", got, len(a.sites["demo"].crowds))
	}
}

// TestOneViewerIsInNoFigure of a title: a title has a place from two on.
func TestOneViewerIsInNoFigure(t *testing.T) {
	a, now := testAudience(t, "s", false), time.Unix(0, 0)
	a.enter(1, title(1), now)
	a.report("demo", title(1), &received{1: 5}, nil)
	if got := a.titles(); len(got) != 1 {
		t.Errorf("%v", got)
	}
	a.enter(1, title(1), now)
	a.report("demo", title(1), &received{1: 7}, nil)
	a.enter(-1, title(1), now)
	a.report("demo", title(1), &received{1: 9}, nil)
	if d := a.deliveries()[0]; len(d.Titles) != 2 || d.Titles[0].Bytes["seed"] != 7 || d.Titles[1].Bytes["seed"] != 14 {
		t.Errorf("%+v", d.Titles)
	}
}

// TestAPlaceIsTakenByABusierTitle, twice as busy: titles that are about as busy do not take turns.
func TestAPlaceIsTakenByABusierTitle(t *testing.T) {
	a, now := testAudience(t, "s", true), time.Unix(0, 0)
	for i := range busiest {
		a.enter(10+i, title(i), now)
	}
	a.enter(19, "/new", now)
	if slices.Contains(a.titles(), "/new") {
		t.Error("19 viewers took the place of 10")
	}
	a.enter(1, "/new", now)
	if got := a.titles(); !slices.Contains(got, "/new") || slices.Contains(got, title(0)) {
		t.Errorf("%v", got)
	}
	a.enter(-9, title(1), now) // no viewer enters /film/0, which is the busier one now
	a.report("demo", title(0), &received{3}, nil)
	if d := a.deliveries()[0]; !slices.Contains(a.titles(), title(0)) || slices.Contains(a.titles(), title(1)) || d.Bytes["origin"] != 3 {
		t.Errorf("%+v", d)
	}
}

// TestNoFigureGoesBack has viewers come, go and report at random, with scrapes between: a series that is in two scrapes in a row has not
// fallen, the rest is always there, and all together are what was reported.
func TestNoFigureGoesBack(t *testing.T) {
	a, now := testAudience(t, "s", false), time.Unix(0, 0)
	random := rand.New(rand.NewPCG(1, 2))
	viewers := map[int]int{}
	before, came, gone := told(a.collect), 0, 0
	var reported int64
	for range 20_000 {
		i := int(math.Abs(random.NormFloat64()*15)) + int(now.Sub(time.Unix(0, 0))/time.Hour)
		switch random.IntN(4) {
		case 0:
			if viewers[i] < 30 {
				viewers[i]++
				a.enter(1, title(i), now)
			}
		case 1:
			if viewers[i] > 0 {
				viewers[i]--
				a.enter(-1, title(i), now)
			}
		case 2:
			n := random.Int64N(100)
			reported += n
			a.report("demo", title(i), &received{2: n}, map[string]int64{"urgent": 1, "unheard-of": 1})
		default:
			now = now.Add(time.Duration(random.IntN(30)) * time.Second)
			a.maintain(now)
			after := told(a.collect)
			for name, v := range before {
				if now, there := after[name]; there && now < v && strings.Contains(name, "_total") {
					t.Fatalf("%s fell from %v to %v", name, v, now)
				} else if !there && strings.Contains(name, ","+otherTitles) {
					t.Fatalf("%s is gone", name)
				} else if !there {
					gone++
				}
			}
			for name := range after {
				if _, there := before[name]; !there {
					came++
				}
			}
			before = after
		}
	}
	d := a.deliveries()[0]
	if d.Bytes["peer"] != reported || len(d.Reasons) != len(metric.Reasons) {
		t.Errorf("%+v, reported %d", d, reported)
	}
	if came < 60 || gone < 60 {
		t.Errorf("%d series came and %d went: this tries nothing", came, gone)
	}
}

// TestNamesOfTitlesAreHashed with the trackers' secret, unless the operator wants names; no title passes for all others.
func TestNamesOfTitlesAreHashed(t *testing.T) {
	label := func(a *audience, title string) string { return a.label("demo", title) }
	one, same, stranger, named := testAudience(t, "s", false), testAudience(t, "s", false), testAudience(t, "x", false), testAudience(t, "s", true)
	hash := label(one, testTitle)
	if len(hash) != 16 || strings.Contains(hash, "bbb") || hash != label(same, testTitle) || hash == label(stranger, testTitle) || hash == one.label("film", testTitle) {
		t.Errorf("%s here, %s at another tracker, %s with another secret", hash, label(same, testTitle), label(stranger, testTitle))
	}
	if label(named, testTitle) != testTitle || label(named, otherTitles) != label(one, otherTitles) {
		t.Errorf("with names: %s, %s", label(named, testTitle), label(named, otherTitles))
	}
	if len(newSecrets(&Config{}).titles) == 0 {
		t.Error("hashes have no key")
	}
}

// TestFiguresOfTitlesAreWhatViewersReport has real viewers join and report, and lie.
func TestFiguresOfTitlesAreWhatViewersReport(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(func(c *Config) { c.TitleNames = true })
	one, two := n.viewer(""), n.viewer("")
	swarm := one.join().Swarm
	two.join()
	w.clock.Move(10 * time.Second)
	one.send(&signal.Stats{Swarm: swarm, Interval: 10_000, Bytes: map[string]int64{"peer": 3000, "peer_relay": 200, "origin": 1000}, Reasons: map[string]int64{"no-holder": 2}})
	series := func(labels string) float64 {
		return told(n.Collect)["leeway_viewer_title_received_bytes_total{demo,"+labels+"}"]
	}
	testkit.Eventually(t, "reported", func() bool { return series(testTitle+",peer,direct") == 3000 })
	if series(testTitle+",peer,relay") != 200 || series(testTitle+",origin,direct") != 1000 || series("other,peer,direct") != 0 {
		t.Errorf("%v", told(n.Collect))
	}
	two.send(&signal.Stats{Swarm: swarm, Interval: 10_000, Bytes: map[string]int64{"peer": 1 << 50}})
	testkit.Eventually(t, "clamped", func() bool { return w.metrics.Value(defClamped) > 0 })
	if most := float64(12 * maxBytesPerSecond); series(testTitle+",peer,direct") > 3000+most {
		t.Errorf("a viewer claims more than is possible: %v", series(testTitle+",peer,direct"))
	}
	if got := told(n.Collect)["leeway_tracker_title_viewers{demo,"+testTitle+"}"]; got != 2 {
		t.Errorf("%v viewers", got)
	}
	one.send(&signal.Leave{Swarm: swarm})
	if err := two.ws.Close(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "no viewers", func() bool { return told(n.Collect)["leeway_tracker_title_viewers{demo,"+testTitle+"}"] == 0 })
	w.clock.Move(placeLeft)
	testkit.Eventually(t, "its place is free", func() bool {
		return len(slices.Collect(maps.Keys(told(n.Collect)))) == 1+len(receptions)
	})
}

// leave is when a viewer leaves a title.
type leave struct {
	title int
	at    time.Time
}

// TestPlacesAreKept plays a day of a catalog of 500 titles of Zipf's popularity with about 1,000 viewers at a time, each for about
// half an hour, and counts how often a title lost its place to another: each time series end and others begin.
func TestPlacesAreKept(t *testing.T) {
	a := testAudience(t, "s", false)
	random := rand.New(rand.NewPCG(3, 4))
	popular := rand.NewZipf(random, 1.1, 1, 499)
	var leaves []leave
	changes, seen, shown, viewers := 0, map[string]bool{}, 0, 0
	for second := range 24 * 3600 {
		now := time.Unix(int64(second), 0)
		leaves = slices.DeleteFunc(leaves, func(l leave) bool {
			if l.at.After(now) {
				return false
			}
			a.enter(-1, title(l.title), now)
			return true
		})
		if random.Float64() < 1000.0/1800 {
			i := int(popular.Uint64())
			a.enter(1, title(i), now)
			leaves = append(leaves, leave{i, now.Add(time.Duration(random.ExpFloat64() * 1800 * float64(time.Second)))})
		}
		if second%60 != 0 {
			continue
		}
		a.maintain(now)
		placed := map[string]bool{}
		for _, c := range a.sites["demo"].placed {
			placed[c.title] = true
			shown += c.viewers
			if second > 3600 && !seen[c.title] {
				changes++
			}
		}
		viewers += a.sites["demo"].viewers
		seen = placed
	}
	t.Logf("%d changes of a place in a day; the places have %.0f %% of the viewers", changes, 100*float64(shown)/float64(viewers))
	if changes > 60 || shown*5 < 2*viewers {
		t.Errorf("%d changes, and %d of %d viewers", changes, shown, viewers)
	}
}
