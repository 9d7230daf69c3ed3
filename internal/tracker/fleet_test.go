package tracker

import (
	"encoding/hex"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func testFleet(n byte) *bus.SeedFleet {
	return &bus.SeedFleet{ID: signal.Bytes{n, 7: 0}, Address: "10.0.0.1:4602"}
}

// fleetRoster knows so many seeds, each of the fleet that of says; nil is none.
func fleetRoster(seeds int, of func(n int) *bus.SeedFleet) (*roster, []signal.ID) {
	r := newRoster(newID(), Config{BeatEvery: time.Second})
	var ids []signal.ID
	for n := range seeds {
		id := newID()
		ids = append(ids, id)
		r.seed(bus.SeedBeat{Seed: id, Sites: []string{"demo"}, Fleet: of(n)}, time.Unix(1, 0))
	}
	return r, ids
}

// TestMoreViewersAreServedByMoreSeeds: those of one fleet, the first in the swarm's rank.
func TestMoreViewersAreServedByMoreSeeds(t *testing.T) {
	r, _ := fleetRoster(40, func(n int) *bus.SeedFleet { return testFleet(1) })
	swarm := newID()
	order := r.seedsFor("demo", swarm)
	for viewers, want := range map[int]int{0: 2, 1: 2, 24: 2, 25: 3, 50: 4, 300: 14, 350: 16, 100_000: 16} {
		seeds, fleet := r.serving("demo", swarm, viewers)
		if !fleet || !slices.Equal(seeds, order[:want]) {
			t.Errorf("%d viewers: %d seeds, want the first %d", viewers, len(seeds), want)
		}
	}
	alone, _ := fleetRoster(40, func(int) *bus.SeedFleet { return nil })
	for viewers, want := range map[int]int{1: 1, 50: 1, 51: 2, 100_000: 2} {
		if seeds, fleet := alone.serving("demo", swarm, viewers); fleet || len(seeds) != want {
			t.Errorf("%d viewers of seeds that do not share: %d seeds, want %d", viewers, len(seeds), want)
		}
	}
	two, ids := fleetRoster(40, func(n int) *bus.SeedFleet { return testFleet(byte(n % 2)) })
	seeds, _ := two.serving("demo", swarm, 100_000)
	first := slices.Index(ids, seeds[0]) % 2
	if len(seeds) != 16 || slices.ContainsFunc(seeds, func(id signal.ID) bool { return slices.Index(ids, id)%2 != first }) {
		t.Errorf("%d seeds, and not of one fleet", len(seeds))
	}
	if seeds, _ := r.serving("other", swarm, 9); len(seeds) != 0 {
		t.Errorf("seeds of another site: %v", seeds)
	}
}

// TestViewersAreSpreadOverTheSeedsOfAFleet: evenly, and most stay when one drains; a viewer that cannot reach one seed has others.
func TestViewersAreSpreadOverTheSeedsOfAFleet(t *testing.T) {
	r, ids := fleetRoster(5, func(int) *bus.SeedFleet { return testFleet(1) })
	swarm := newID()
	const viewers = 60 // served by four
	var sessions []signal.ID
	met, before := map[signal.ID]int{}, map[signal.ID]signal.ID{}
	for range 2000 {
		session := newID()
		all := r.meeting("demo", swarm, session, viewers, nil)
		if len(all) != 5 {
			t.Fatalf("%d of 5 seeds may be met", len(all))
		}
		sessions = append(sessions, session)
		met[all[0]]++
		before[session] = all[0]
	}
	serving, _ := r.serving("demo", swarm, viewers)
	for _, seed := range serving {
		if n := met[seed]; n < 400 || n > 600 {
			t.Errorf("one of four seeds has %d of 2000 viewers", n)
		}
	}
	if len(met) != 4 {
		t.Errorf("viewers at %d seeds", len(met))
	}
	for _, session := range sessions[:100] {
		if first := r.meeting("demo", swarm, session, viewers, serving[2:])[0]; first != serving[2] && first != serving[3] {
			t.Fatal("a viewer meets a seed that was not told which seeds it shares with")
		}
	}
	drains := serving[1]
	r.seed(bus.SeedBeat{Seed: drains, Sites: []string{"demo"}, Fleet: testFleet(1), Draining: true}, time.Unix(1, 0))
	newcomer := ids[slices.IndexFunc(ids, func(id signal.ID) bool { return !slices.Contains(serving, id) })]
	for _, session := range sessions {
		now := r.meeting("demo", swarm, session, viewers, nil)[0]
		if now == drains || now != before[session] && before[session] != drains && now != newcomer {
			t.Fatal("a viewer of another seed moved, or one stayed with what drains")
		}
	}
}

// TestSeedsOfATitleKnowOfEachOther: all are told which seeds serve it, and again when another comes.
func TestSeedsOfATitleKnowOfEachOther(t *testing.T) {
	w := newWorld(t)
	w.fleet = testFleet(1)
	n := w.tracker(nil)
	first, told := w.seed()
	testkit.Eventually(t, "the seed is known", func() bool { return len(n.roster.seedsFor("demo", first)) == 1 })
	v := n.viewer("")
	v.join()
	expect[*signal.Introduce](v)
	if title := receive(t, told); title.Kind != bus.KindTitle || !slices.Equal(title.Title.Seeds, []signal.ID{first}) {
		t.Fatalf("the only seed was told %+v", title.Title)
	}
	second, toldToo := w.seed()
	for _, c := range []<-chan bus.SeedDelivery{told, toldToo} {
		for {
			title := receive(t, c).Title
			if title != nil && len(title.Seeds) == 2 {
				if !slices.Contains(title.Seeds, first) || !slices.Contains(title.Seeds, second) {
					t.Errorf("the seeds are %v", title.Seeds)
				}
				break
			}
		}
	}
}

// TestATrackerKnowsSoManySeeds: a client of the bus that beats under ever new names fills no more, and those that are known stay.
func TestATrackerKnowsSoManySeeds(t *testing.T) {
	r, ids := fleetRoster(2*maxSeeds, func(int) *bus.SeedFleet { return nil })
	if len(r.seeds) != maxSeeds {
		t.Errorf("%d seeds are known", len(r.seeds))
	}
	if _, first := r.seeds[ids[0]]; !first {
		t.Error("the first has gone")
	}
	r.seed(bus.SeedBeat{Seed: ids[0], Sites: []string{"demo"}}, time.Unix(9, 0))
	if at := r.seeds[ids[0]].at; at != time.Unix(9, 0) {
		t.Errorf("a known one is heard no more, since %v", at)
	}
	if r.seed(bus.SeedBeat{Seed: ids[maxSeeds], VerifyKeys: []bus.SeedKey{{VerifyKey: signal.VerifyKey{Alg: signal.AlgSeed}}}}, time.Unix(9, 0)) || len(r.keys) > 0 {
		t.Error("the keys of a seed that is not known are taken")
	}
}

// TestKeysOfSeedsThatBeatStay: of more seeds than a viewer is told keys of, the same ones are told while they beat, and no beat is a change that
// every session would be told. A seed that has gone makes room. The log says once that there are too many.
func TestKeysOfSeedsThatBeatStay(t *testing.T) {
	const seeds = signal.MaxKeys + 8
	now := time.Unix(1, 0)
	var log testkit.Output
	r := newRoster(newID(), Config{BeatEvery: 2 * time.Second, Log: slog.New(slog.NewTextHandler(&log, nil))})
	beat := func(n int) (changed bool) {
		now = now.Add(2 * time.Second / seeds)
		id := signal.ID{1, byte(n)}
		key := signal.VerifyKey{KeyID: id[:8], Alg: signal.AlgSeed, Key: make(signal.Bytes, 65)}
		return r.seed(bus.SeedBeat{Seed: id, Sites: []string{"demo"}, VerifyKeys: []bus.SeedKey{{VerifyKey: key, Sites: []string{"demo"}}}}, now)
	}
	for n := range seeds {
		if changed := beat(n); changed != (n < signal.MaxKeys) {
			t.Errorf("the first beat of seed %d is a change: %v", n, changed)
		}
	}
	for range 3 {
		changes := 0
		for n := range seeds {
			if beat(n) {
				changes++
			}
		}
		if changes > 0 {
			t.Errorf("%d beats of %d are changes", changes, seeds)
		}
	}
	changes := 0
	for range 5 { // for longer than a seed that beats is silent
		for n := 1; n < seeds; n++ {
			if beat(n) {
				changes++
			}
		}
	}
	if changes != 1 {
		t.Errorf("when one has gone, there are %d changes", changes)
	}
	first := signal.ID{1, signal.MaxKeys}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, hex.EncodeToString(first[:8])) {
		t.Errorf("the log says %q", text)
	}
}
