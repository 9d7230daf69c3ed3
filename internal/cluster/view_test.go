package cluster

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/swarm"
)

const beat = 2 * time.Second

var start = time.Unix(1_700_000_000, 0)

func draw(r *rand.Rand) (id swarm.ID) {
	for i := range id {
		id[i] = byte(r.Uint32())
	}
	return id
}

func draws(r *rand.Rand, n int) []swarm.ID {
	out := make([]swarm.ID, n)
	for i := range out {
		out[i] = draw(r)
	}
	return out
}

// homes is where a view has each of the keys.
func homes(v *View, keys []swarm.ID) map[swarm.ID]swarm.ID {
	out := map[swarm.ID]swarm.ID{}
	for _, k := range keys {
		out[k] = v.Home(k)
	}
	return out
}

// TestOnlyTheSwarmsOfTheLostTrackerMove: whatever takes a tracker out, for good or for a while, nothing else moves; and its swarms are
// spread over the others.
func TestOnlyTheSwarmsOfTheLostTrackerMove(t *testing.T) {
	leave := map[string]func(v *View, id swarm.ID){
		"gone":     func(v *View, id swarm.ID) { v.Gone(id) },
		"silent":   func(v *View, id swarm.ID) { v.Silent(id) },
		"draining": func(v *View, id swarm.ID) { v.Beat(id, 0, true, start) },
		"dead": func(v *View, id swarm.ID) {
			for other := range v.trackers {
				if other != id {
					v.Beat(other, 0, false, start.Add(3*beat))
				}
			}
			v.Expire(start.Add(3*beat + 1))
		},
	}
	r := rand.New(rand.NewPCG(1, 2))
	for name, take := range leave {
		for n := 2; n <= 9; n++ {
			ids, keys := draws(r, n), draws(r, 3000)
			v := NewView(ids[0], 3*beat)
			for _, id := range ids[1:] {
				if !v.Beat(id, 7, false, start) || v.Beat(id, 7, false, start) {
					t.Fatal("a tracker is new once")
				}
			}
			before := homes(v, keys)
			left := ids[1+r.IntN(n-1)]
			take(v, left)
			after, inherited, orphans := homes(v, keys), map[swarm.ID]int{}, 0
			for k, home := range after {
				switch {
				case home == left:
					t.Fatalf("%s: a swarm stayed with a tracker that left", name)
				case before[k] == left:
					inherited[home]++
					orphans++
				case before[k] != home:
					t.Fatalf("%s: of %d trackers one left, and a swarm of another moved", name, n)
				}
			}
			for _, id := range ids {
				if share := float64(orphans) / float64(n-1); id != left && n <= 4 && (float64(inherited[id]) < 0.7*share || float64(inherited[id]) > 1.3*share) {
					t.Errorf("%s: one of %d heirs has %d of %d swarms", name, n-1, inherited[id], orphans)
				}
			}
			v.Beat(left, 7, false, start.Add(3*beat))
			for k, home := range homes(v, keys) {
				if before[k] != home {
					t.Fatalf("%s: a tracker that came back did not get its swarms again", name)
				}
			}
		}
	}
}

// TestViewsAgree: trackers that heard the same beats, in any order, have the same homes.
func TestViewsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	ids, keys := draws(r, 5), draws(r, 500)
	var want map[swarm.ID]swarm.ID
	for _, self := range ids {
		v := NewView(self, 3*beat)
		for _, i := range r.Perm(len(ids)) {
			v.Beat(ids[i], 0, false, start)
		}
		got := homes(v, keys)
		if want == nil {
			want = got
		}
		for k := range want {
			if got[k] != want[k] {
				t.Fatal("two trackers differ about a home")
			}
		}
	}
}

func TestTrackersThatLiveAreHomes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	self, other, third := draw(r), draw(r), draw(r)
	v := NewView(self, 3*beat)
	if v.Home(draw(r)) != self || !v.Lives(self) || v.Lives(other) {
		t.Error("a lone tracker is home to everything")
	}
	v.Drain()
	if v.Home(draw(r)) != self {
		t.Error("a lone tracker that drains is home nevertheless")
	}
	v.Beat(other, 9, false, start)
	if n, sessions := v.Others(); n != 1 || sessions != 9 || v.Home(draw(r)) != other {
		t.Error("a swarm stayed with a tracker that drains")
	}
	v.Beat(third, 5, true, start)
	if n, sessions := v.Others(); n != 1 || sessions != 9 || v.Trackers() != 3 {
		t.Errorf("%d trackers with %d sessions would take more", n, sessions)
	}
	v.Silent(other)
	if !v.Lives(other) || v.Home(draw(r)) == other {
		t.Error("a silent tracker lives, and is home to nothing")
	}
	if reached := v.Reached(); len(reached) != 2 || !reached[self] || !reached[third] {
		t.Errorf("reached are %v", reached)
	}
	v.Beat(other, 9, false, start.Add(beat))
	if v.Home(draw(r)) != other {
		t.Error("a tracker that beats again is home again")
	}
	v.Silent(self)
	v.Gone(self)
	v.Expire(start.Add(time.Hour))
	if !v.Lives(self) || v.Lives(other) || v.Lives(third) {
		t.Error("an hour later only self lives")
	}
	for range 2 * maxTrackers {
		v.Beat(draw(r), 0, false, start)
	}
	if v.Trackers() > maxTrackers {
		t.Errorf("%d trackers are remembered", v.Trackers())
	}
}

// TestATrackerThatBeatsAndDoesNotAnswerIsLeftAlone: each beat would else have its swarms go back to it, and each viewer wait for its answer.
func TestATrackerThatBeatsAndDoesNotAnswerIsLeftAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	self, other := draw(r), draw(r)
	v, now := NewView(self, 3*beat), start
	v.Beat(other, 0, false, now)
	key := draw(r)
	home := func() bool { return v.Home(key) == other }
	for !home() {
		key = draw(r)
	}
	fails := func(want time.Duration) {
		t.Helper()
		v.Asked(other, false, now)
		v.Asked(other, false, now) // was asked at the same time
		v.Asked(other, true, now)  // likewise, and answered
		began := now
		for !home() {
			now = now.Add(beat)
			if v.Beat(other, 0, false, now); !v.Reached()[other] {
				t.Error("its sessions count as out of reach though it beats")
			}
		}
		if got := now.Sub(began); got != want {
			t.Errorf("it is home again after %s, want %s", got, want)
		}
	}
	for _, beats := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		fails(beats * beat)
	}
	v.Asked(other, true, now)
	fails(beat)
	if v.Asked(draw(r), false, now); v.Trackers() != 2 {
		t.Error("a tracker that does not live is remembered")
	}
}

// TestATrackerThatSleptJudgesNoOther: beats that came while a tracker did not run are read after its clock.
func TestATrackerThatSleptJudgesNoOther(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	self, alive, dead := draw(r), draw(r), draw(r)
	v := NewView(self, 3*beat)
	v.Beat(alive, 0, false, start)
	v.Beat(dead, 0, false, start)
	v.Expire(start)
	awake := start.Add(time.Minute)
	v.Expire(awake)
	if v.Trackers() != 3 {
		t.Error("a tracker that slept took others for dead")
	}
	v.Beat(alive, 0, false, awake)
	v.Expire(awake.Add(beat))
	if !v.Lives(alive) || v.Lives(dead) {
		t.Error("a beat later the live trackers are known")
	}
}
