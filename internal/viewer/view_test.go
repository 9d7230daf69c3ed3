package viewer

import (
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

func (r *rig) sees() schedule.Input { return r.view.input(schedule.Input{}, false) }

// TestWhichSegmentsTheScheduleSees: in the order of the presentation, those that the player waits for or whose bytes wait for a certificate.
func TestWhichSegmentsTheScheduleSees(t *testing.T) {
	r := newRig(t)
	data := media(2)
	last, unseen, kept, first := r.segment(3, data), r.segment(1, data), r.segment(2, nil), r.segment(0, nil)
	kept.uncertified = data
	r.store.open(last.id, int64(len(data)))
	r.store.put(last.id, 1, pieceOf(data, 1))
	r.waits(last, 10*time.Second)
	r.waits(last, 20*time.Second)
	r.waits(first, time.Second)
	in := r.sees()
	var ids []string
	for _, s := range in.Segments {
		ids = append(ids, s.ID)
	}
	if want := []string{first.id, kept.id, last.id}; !slices.Equal(ids, want) || slices.Contains(ids, unseen.id) {
		t.Fatalf("seen are %v, want %v", ids, want)
	}
	if s := in.Segments[2]; s.DeadlineUs != in.NowUs+10_000_000 || s.Pieces != 2 || !slices.Equal(s.Have, []int{1}) || s.Certificate != schedule.CertHeld || s.AskedUs != in.NowUs {
		t.Errorf("%+v", s)
	}
	if s := in.Segments[1]; s.AskedUs != -1 || s.Pieces != 0 || s.CertAskedUs != -1 || s.OriginUs != -1 {
		t.Errorf("%+v", s)
	}
}

// TestTheScheduleSeesWhetherTheStreamGoesOn, as the player's last request says.
func TestTheScheduleSeesWhetherTheStreamGoesOn(t *testing.T) {
	r := newRig(t)
	for _, live := range []bool{false, true, false} {
		r.view.asked(request{live: live, deadline: func() time.Duration { return time.Second }})
		if in := r.sees(); in.Live != live {
			t.Errorf("live %v, want %v", in.Live, live)
		}
	}
}

// TestWhichPeersTheScheduleSees: a hello is waited for, a peer that gives nothing is left out, and a relay serves where no other source can.
func TestWhichPeersTheScheduleSees(t *testing.T) {
	for name, c := range map[string]struct {
		set             func(r *rig, s *seg, f *friend)
		peers, requests int
		slots           int
	}{
		"a peer":                 {func(*rig, *seg, *friend) {}, 1, 0, 64},
		"one that was asked":     {func(_ *rig, s *seg, f *friend) { f.download.Request(s.target, peer.Foreground, "", 0, 1) }, 1, 2, 62},
		"one that gives nothing": {func(_ *rig, _ *seg, f *friend) { f.noUpload = true }, 0, 0, 0},
		"one without a hello":    {func(_ *rig, _ *seg, f *friend) { f.ready = false }, 0, 0, 0},
		"a relay":                {func(_ *rig, _ *seg, f *friend) { f.remote.path = transfer.Relay }, 0, 0, 0},
		"a relay, by policy":     {func(r *rig, _ *seg, f *friend) { f.remote.path, r.relays = transfer.Relay, true }, 1, 0, 64},
		"a relay that was asked": {func(_ *rig, s *seg, f *friend) {
			f.remote.path = transfer.Relay
			f.download.Request(s.target, peer.Foreground, "", 0)
		}, 1, 1, 0},
		"a relay, the origin fails": {func(r *rig, _ *seg, f *friend) {
			f.remote.path, r.line.failing, r.line.failed = transfer.Relay, true, r.w.now
		}, 1, 0, 64},
		"a relay, a seed besides": {func(r *rig, _ *seg, f *friend) {
			f.remote.path, r.line.failing, r.line.failed = transfer.Relay, true, r.w.now
			r.peer(3, schedule.Seed, peer.OnDemand)
		}, 1, 0, 64},
	} {
		r := newRig(t)
		s := r.segment(0, media(3))
		f := r.peer(2, schedule.Viewer, 0)
		f.holds(s, 3)
		c.set(r, s, f)
		in := r.sees()
		if len(in.Peers) != c.peers || len(in.Requests) != c.requests || c.peers > 0 && in.Peers[0].Slots != c.slots {
			t.Errorf("%s: %+v, %d requests", name, in.Peers, len(in.Requests))
		}
		if in.Linking != !f.ready {
			t.Errorf("%s: linking %v", name, in.Linking)
		}
	}
}

// TestAPeerThatGivesWayDoesNotStall: requests of the background, and pieces that are being checked, have no progress to be late with.
func TestAPeerThatGivesWayDoesNotStall(t *testing.T) {
	r := newRig(t)
	s := r.segment(0, media(3))
	f := r.peer(2, schedule.Viewer, peer.AcksBackground)
	f.download.Request(s.target, peer.Foreground, "", 0)
	f.download.Request(s.target, peer.Background, "", 1)
	f.acks = true
	r.peer(3, schedule.Viewer, 0)
	in := r.sees()
	if in.Peers[0].BehindUntilUs != 0 || in.Peers[1].BehindUntilUs != never {
		t.Errorf("nothing is asked in the background of one that acks until %d, of one that does not until %d", in.Peers[0].BehindUntilUs, in.Peers[1].BehindUntilUs)
	}
	if in.Requests[0].ProgressUs != in.NowUs || in.Requests[1].ProgressUs != never || in.Policy.PieceCap != schedule.DefaultPolicy.PieceCap+1 {
		t.Errorf("%+v, cap %d", in.Requests, in.Policy.PieceCap)
	}
}
