package swarmbench

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/sleep"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func TestAFlashCrowdComesAfterTheFirst(t *testing.T) {
	l := &show{first: 3}
	plans := Trace(1, 30, time.Minute, 0, 0)
	l.plan(plans)
	for i, p := range plans {
		if p.SeekAfter != 0 {
			t.Errorf("viewer %d seeks", i)
		}
		if early := p.Arrive < rushAfter; early != (i < 3) || p.Arrive > rushAfter+rushTime {
			t.Errorf("viewer %d comes at %v", i, p.Arrive)
		}
	}
}

func TestInABlackoutAThirdIsGoneAtOnce(t *testing.T) {
	l := &show{blackout: true}
	plans := Trace(1, 12, time.Minute, 20*time.Second, 0)
	l.plan(plans)
	died := 0
	for _, p := range plans {
		if p.Dies {
			died++
			if p.Arrive+p.LeaveAfter != goneAt {
				t.Errorf("one is gone at %v", p.Arrive+p.LeaveAfter)
			}
		}
	}
	if died != 4 {
		t.Errorf("%d of 12 are gone", died)
	}
}

// TestLagIsComparedByItsMedian: of the viewers that say it in both ways of playing.
func TestLagIsComparedByItsMedian(t *testing.T) {
	l := &show{}
	with := Swarm{Served: Served{LiveLag: 0.5}, Outcomes: []Outcome{{LatencyMs: 7100, Stats: signal.Stats{StallMs: 5, Stalls: 1}}, {LatencyMs: 6500, Leaps: 2}, {LatencyMs: 30_000}, {}}}
	without := Swarm{Outcomes: []Outcome{{LatencyMs: 6000}, {LatencyMs: 7000}, {LatencyMs: 29_500}, {LatencyMs: 6000}}}
	got := l.compare(with, without)
	for name, want := range map[string]float64{
		"lag_seconds": 7.1, "lag_seconds_origin_only": 6.5, "lag_added_seconds": 0.5, "leaps": 2, "leaps_origin_only": 0, "stalled_viewers": 1, "stalled_viewers_origin_only": 0,
		"seed_certificate_lag_p95_seconds": 0.5,
	} {
		if d := got[name] - want; d > 1e-9 || d < -1e-9 {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	declared := map[string]bool{}
	for _, f := range l.declared(nil) {
		declared[f.Name] = true
	}
	for name := range got {
		if !declared[name] {
			t.Errorf("%s is not declared", name)
		}
	}
	if len(declared) != len(got) {
		t.Errorf("%d figures are declared, %d measured", len(declared), len(got))
	}
}

// TestALagThatNoViewerKnowsIsNotMeasured: 0 would meet a goal.
func TestALagThatNoViewerKnowsIsNotMeasured(t *testing.T) {
	told, untold := Swarm{Outcomes: []Outcome{{LatencyMs: 6000}}}, Swarm{Outcomes: []Outcome{{}}}
	for _, c := range []struct {
		with, without Swarm
		want          []string
	}{
		{told, told, []string{"lag_added_seconds", "lag_seconds", "lag_seconds_origin_only"}}, {told, untold, []string{"lag_seconds"}},
		{untold, told, []string{"lag_seconds_origin_only"}}, {untold, untold, nil},
	} {
		got := (&show{}).compare(c.with, c.without)
		maps.DeleteFunc(got, func(name string, _ float64) bool { return !strings.Contains(name, "lag") })
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, c.want) {
			t.Errorf("%v, want %v", names, c.want)
		}
	}
	for name := range compareRival(untold, untold, untold) {
		if strings.HasPrefix(name, "lag_") {
			t.Errorf("of another program: %s", name)
		}
	}
}

// TestALagOfNoPartsIsNoLag: nor is one above all bounds infinite, which no result can be.
func TestALagOfNoPartsIsNoLag(t *testing.T) {
	with := Swarm{Outcomes: []Outcome{outcome(1, 1, 1, 1, 1, 1, 1)}}
	for lag, want := range map[float64]bool{0: false, 0.05: true} {
		with.Served.PartLag = lag
		if got, is := (&show{part: halfSecond}).compare(with, Swarm{})[partLag]; is != want || got != lag {
			t.Errorf("%v, measured %v", got, is)
		}
	}
	const name = "leeway_seed_part_certificate_seconds"
	for below, want := range map[int64]float64{0: 2.5, 99: 0.05, 100: 0.05} {
		sums := func(series string, labels ...string) int64 {
			if series == name+"_count" {
				return 100
			}
			if slices.Contains([]string{`le="0.005"`, `le="0.01"`, `le="0.025"`}, labels[0]) {
				return 0
			}
			return below
		}
		if got := within(sums, name, 0.99); got != want {
			t.Errorf("%d of 100 within 0.05 s: %v", below, got)
		}
	}
}

// TestLagAddedIsNotThatOfComing: twelve viewers that come up to 0.1 s later in one way of playing than in the other, and lose nothing
// else, are behind by that and no more. One of them often comes after a publication in one way alone, and is 2 s nearer to the edge there.
func TestLagAddedIsNotThatOfComing(t *testing.T) {
	const segment, holdBack, late = 2000, 6000, 100
	apart := 0.0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var with, without Swarm
		for range 12 {
			came := r.Int64N(30_000)
			behind := func() Outcome { return Outcome{LatencyMs: holdBack + (came+r.Int64N(late))%segment} }
			with.Outcomes, without.Outcomes = append(with.Outcomes, behind()), append(without.Outcomes, behind())
		}
		if got := median(lagsAdded(with, without)); got > late/1000.0 || got < -late/1000.0 {
			t.Errorf("trace %d: %.3f s", seed, got)
		}
		apart = max(apart, median(with.lags())-median(without.lags()))
	}
	if apart < 2*late/1000.0 {
		t.Errorf("the medians differ by %.3f s at most: the test says nothing", apart)
	}
}

// TestWhatIsGoneIsComparedWithItsDigest: the origin is not asked.
func TestWhatIsGoneIsComparedWithItsDigest(t *testing.T) {
	s := &servers{}
	outcomes := []Outcome{{Played: []played{given("http://any.test/media/live/1.ts", "one"), given("http://any.test/media/live/2.ts", "other")}}}
	truth := map[string]string{"/media/live/1.ts": given("", "one").Digest, "/media/live/2.ts": given("", "two").Digest}
	if n, err := s.wrongBytes(outcomes, truth); err != nil || n != int64(len("other")) {
		t.Errorf("%d wrong bytes, %v", n, err)
	}
}

// TestAClockIsWatchedWhenItsPlaylistsAreFull, and any other stream at once.
func TestAClockIsWatchedWhenItsPlaylistsAreFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &servers{opened: time.Now()}
		sleep.For(t.Context(), 12*time.Second)
		for _, c := range []struct {
			show *show
			at   time.Duration
		}{{nil, 12 * time.Second}, {&show{}, 12 * time.Second}, {&show{part: halfSecond}, clockWindow}, {&show{part: halfSecond}, clockWindow}} {
			if c.show.settle(t.Context(), s); time.Since(s.opened) != c.at {
				t.Errorf("%+v: after %s, want %s", c.show, time.Since(s.opened), c.at)
			}
		}
	})
}
