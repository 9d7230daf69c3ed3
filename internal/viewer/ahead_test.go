package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// slowUp sends hardly more than a film has, so that what is asked for late comes late.
var slowUp = access{up: 250_000, down: 2.5e6}

// ahead plays a film of 400 s of 100 kB/s for a viewer that comes 60 s after another one.
func aheadScene(t *testing.T, policy func(*signal.Policy), change func(*Config)) (*scene, *actor) {
	s := newScene(t, fourSeconds(100, 400_000))
	s.tracker.policy.Prefetch = true
	if policy != nil {
		policy(&s.tracker.policy)
	}
	s.viewer(fast, nil)
	s.w.run(60 * time.Second)
	return s, s.viewer(slowUp, change)
}

// outstanding counts a viewer's requests of the background.
func (a *actor) outstanding() int { return a.title.engine.peers.behind() }

func TestWhatIsAheadIsFetchedBehindEverythingElse(t *testing.T) {
	testkit.InOneGoroutine(t)
	s, late := aheadScene(t, nil, nil)
	s.w.run(150 * time.Second)
	st := late.now().Stats
	ahead := late.now().Stats.Bytes["peer"] - late.now().PositionMs/10 - 30*100_000 // beyond 30 s of buffer
	if st.PrefetchedBytes == 0 || ahead < 1_000_000 {
		t.Errorf("%d bytes came in the background, %d more than the player's buffer takes", st.PrefetchedBytes, ahead)
	}
	if st.PrefetchWasted != 0 || st.WastedBytes != 0 {
		t.Errorf("%d and %d bytes are lost though no viewer has sought or left", st.PrefetchWasted, st.WastedBytes)
	}
	s.w.run(400 * time.Second)
	s.check()
	st = late.now().Stats
	if st.PrefetchWasted != 0 || st.Stalls > 0 || st.DuplicateBytes > 0 {
		t.Errorf("at the end %d bytes are lost and %d are double, %d stalls", st.PrefetchWasted, st.DuplicateBytes, st.Stalls)
	}
	if all := late.now().Offload; all < 0.9 {
		t.Errorf("offload %.2f", all)
	}
	if reported := s.tracker.stats.PrefetchedBytes; reported < st.PrefetchedBytes {
		t.Errorf("the tracker heard of %d of %d bytes", reported, st.PrefetchedBytes)
	}
}

func TestNothingIsFetchedAheadWhereItIsOff(t *testing.T) {
	testkit.InOneGoroutine(t)
	for name, c := range map[string]struct {
		policy func(*signal.Policy)
		change func(*Config)
	}{
		"site":   {policy: func(p *signal.Policy) { p.Prefetch = false }},
		"leech":  {policy: func(p *signal.Policy) { p.Role = "leech" }},
		"line":   {change: func(c *Config) { c.Device.Line.Metered = true }},
		"viewer": {change: func(c *Config) { c.Device.NoPrefetch = true }},
	} {
		t.Run(name, func(t *testing.T) {
			s, late := aheadScene(t, c.policy, c.change)
			s.w.run(150 * time.Second)
			if st := late.now().Stats; st.PrefetchedBytes+st.Promotions > 0 || late.now().PositionMs < 100_000 {
				t.Errorf("%d bytes came ahead, %d promotions, at %d ms", st.PrefetchedBytes, st.Promotions, late.now().PositionMs)
			}
		})
	}
}

// TestAViewerThatLeavesLosesNoMoreThanTheBudget has a viewer leave in the midst of it, on a device that runs on its battery or not.
func TestAViewerThatLeavesLosesNoMoreThanTheBudget(t *testing.T) {
	testkit.InOneGoroutine(t)
	var lost [2]int64
	for i, device := range []Device{{}, {Battery: true}} {
		s, late := aheadScene(t, nil, func(c *Config) { c.Device = device })
		s.w.run(200 * time.Second)
		late.Leave()
		s.w.run(5 * time.Second)
		st := late.now().Stats
		budget := 1<<20 + late.title.ledger.came()/10
		if i == 1 {
			budget /= 4
		}
		if lost[i] = st.PrefetchWasted; lost[i] == 0 || lost[i] > budget || st.WastedBytes < lost[i] {
			t.Errorf("%+v: %d bytes are lost of a budget of %d, %d in all", device, lost[i], budget, st.WastedBytes)
		}
		if heard := s.tracker.stats.PrefetchWasted; heard != lost[i] {
			t.Errorf("%+v: the tracker heard of %d of %d lost bytes", device, heard, lost[i])
		}
	}
	if lost[1] >= lost[0] {
		t.Errorf("%d bytes are lost on battery, %d else", lost[1], lost[0])
	}
}

func TestASeekTakesBackWhatIsAhead(t *testing.T) {
	s, late := aheadScene(t, nil, nil)
	for range 2000 { // until something has come in the background, and something is on its way
		if s.w.run(100 * time.Millisecond); late.title.engine != nil && late.outstanding() > 0 && len(late.title.engine.ahead.kept) > 0 {
			break
		}
	}
	if late.outstanding() == 0 {
		t.Fatal("nothing is asked for in the background")
	}
	at := late.now().PositionMs
	late.loop.Post(func() { late.player.seek(time.Duration(at+150_000) * time.Millisecond) })
	s.w.run(300 * time.Millisecond)
	if n := late.outstanding(); n != 0 {
		t.Errorf("%d requests are outstanding for what is behind the playhead", n)
	}
	s.w.run(20 * time.Second)
	if st := late.now().Stats; st.PrefetchWasted == 0 {
		t.Error("what was skipped is not counted")
	}
}

// TestABackgroundRequestIsNoFault has the peer that is asked in the background reject it, and stay silent.
func TestABackgroundRequestIsNoFault(t *testing.T) {
	s, late := aheadScene(t, nil, nil)
	for range 2000 {
		if s.w.run(100 * time.Millisecond); late.title.engine != nil && late.outstanding() > 0 {
			break
		}
	}
	for _, r := range late.title.engine.peers.byID {
		for _, o := range r.download.Orders() {
			if o.Lane == peer.Background {
				_ = r.Message(peer.Reject{Reason: peer.RejectLaneOff, IDs: []uint32{o.ID}})
				if r.patience.stalledUs != 0 || r.patience.rejects != 0 || r.patience.behindUs != never {
					t.Errorf("stalled until %d, %d rejects, in the background until %d", r.patience.stalledUs, r.patience.rejects, r.patience.behindUs)
				}
				return
			}
		}
	}
	t.Fatal("nothing is asked for in the background")
}

// TestAPeerThatSendsNothingAheadIsLeftAloneThere: another holder is asked.
func TestAPeerThatSendsNothingAheadIsLeftAloneThere(t *testing.T) {
	r := newRig(t)
	s := r.segment(0, media(3))
	f := r.peer(2, schedule.Viewer, 0)
	f.acks, f.acking.Link = true, struct{ background.Link }{}
	f.download.Request(s.target, peer.Background, "", 0)
	for range quietBehind / time.Second {
		r.w.run(time.Second)
		f.says(peer.Ping{})
		r.ahead.takeBack([]*seg{s})
	}
	if in := r.sees(); len(in.Requests) != 1 || in.Peers[0].BehindUntilUs != 0 {
		t.Errorf("%d requests, in the background until %d", len(in.Requests), in.Peers[0].BehindUntilUs)
	}
	r.w.run(time.Second)
	r.ahead.takeBack([]*seg{s})
	if in := r.sees(); len(in.Requests) != 0 || in.Peers[0].BehindUntilUs != in.NowUs+quietBehind.Microseconds() || in.Peers[0].StalledUntilUs != 0 {
		t.Errorf("%d requests, %+v at %d", len(in.Requests), in.Peers[0], in.NowUs)
	}
}

// TestALinkThatMovesIsMeasuredAnew: what is asked for goes by the way that packets take now.
func TestALinkThatMovesIsMeasuredAnew(t *testing.T) {
	s, late := aheadScene(t, nil, nil)
	s.w.run(60 * time.Second)
	measured := func() bool { return late.title.engine.pacing.requester.Stats().RTT > 0 }
	if !measured() {
		t.Fatal("nothing has come")
	}
	for _, r := range late.title.engine.peers.byID {
		r.moved()
	}
	if measured() {
		t.Error("what was measured of the old way is believed")
	}
}
