package viewer

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestStretchesOfTheOrigin: pieces in hand are not asked for again, nor are those on their way, unless there are no others.
func TestStretchesOfTheOrigin(t *testing.T) {
	const all = -1
	for name, c := range map[string]struct {
		held, flying []int
		wholes       bool
		from, until  int // all: the whole
	}{
		"nothing is held":                 {nil, nil, false, all, 0},
		"the first is":                    {[]int{0}, nil, false, 1, 10},
		"the last is":                     {[]int{9}, nil, false, 0, 9},
		"some are on their way":           {[]int{0}, []int{1, 2}, false, 3, 10},
		"all the others are":              {[]int{0}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}, false, 1, 10},
		"a gap as wide as the bridge":     {[]int{1, 2, 3, 4}, nil, false, 0, 10},
		"a gap that is wider":             {[]int{1, 2, 3, 4, 5}, nil, false, 0, 1},
		"the origin does not send a part": {[]int{0}, nil, true, all, 0},
	} {
		r := newRig(t)
		data := media(10)
		s := r.segment(0, data)
		r.line.wholes = c.wholes
		p := r.peer(2, schedule.Viewer, 0)
		for _, n := range c.held {
			r.store.open(s.id, int64(len(data)))
			r.store.put(s.id, n, pieceOf(data, n))
		}
		p.download.Request(s.target, peer.Foreground, "", c.flying...)
		r.waits(s, 0)
		r.loads.startOrigin(s, schedule.Urgent)
		got := r.fetches[0]
		if c.from == all {
			if got.Ranged {
				t.Errorf("%s: asked for bytes %d to %d", name, got.First, got.Last)
			}
			continue
		}
		if first, last := int64(c.from)*segment.PieceSize, min(int64(c.until)*segment.PieceSize, int64(len(data)))-1; !got.Ranged || got.First != first || got.Last != last {
			t.Errorf("%s: asked for bytes %d to %d, want %d to %d", name, got.First, got.Last, first, last)
		}
	}
}

func TestWhatTheOriginSendsIsThePlayers(t *testing.T) {
	r := newRig(t)
	data := media(2)
	s := r.segment(0, nil)
	one, other := r.waits(s, 0), r.waits(s, 0)
	r.loads.startOrigin(s, schedule.NoHolder)
	r.loads.startOrigin(s, schedule.Urgent) // is under way
	r.answer(0, data, nil)
	for _, o := range []*outcome{one, other} {
		if o.n != 1 || o.err != nil || o.got.Source != FromOrigin || o.got.Reason != schedule.NoHolder || o.got.Len() != len(data) {
			t.Errorf("the player has %+v, %v", o.got, o.err)
		}
	}
	if len(r.fetches) != 1 || s.wanted() || !slices.Equal(s.uncertified, data) {
		t.Errorf("%d fetches; %d bytes wait for a certificate", len(r.fetches), len(s.uncertified))
	}
}

func TestTheOriginsErrorIsThePlayersWhenNothingElseHelps(t *testing.T) {
	broken := errors.New("the origin is down")
	r := newRig(t)
	s := r.segment(0, nil)
	s.asked("somebody", 1)
	o := r.waits(s, 0)
	r.loads.startOrigin(s, schedule.Urgent)
	if r.answer(0, nil, broken); s.origin != schedule.OriginFailed || o.n != 0 {
		t.Errorf("the origin is %s, and the player was told %d times", s.origin, o.n)
	}
	r.loads.giveUp(s)
	r.w.run(time.Millisecond)
	if !errors.Is(o.err, broken) || s.wanted() || s.state != schedule.CertNone || s.certPeers != nil {
		t.Errorf("the player has %v; %s", o.err, s.state)
	}
}

// TestAReleasedLoadStopsWhatItAloneNeeded: the origin, and requests to peers.
func TestAReleasedLoadStopsWhatItAloneNeeded(t *testing.T) {
	r := newRig(t)
	s := r.segment(0, media(4))
	p := r.peer(2, schedule.Viewer, 0)
	one, other := r.waits(s, 0), r.waits(s, 0)
	r.loads.startOrigin(s, schedule.Urgent)
	p.download.Request(s.target, peer.Foreground, "", 1, 2)
	if r.loads.release(one.load); r.canceled != 0 || len(p.download.Orders()) != 2 {
		t.Error("what another load needs has stopped")
	}
	if r.loads.release(other.load); r.canceled != 1 || s.origin != schedule.OriginIdle || len(of[peer.Cancel](p)) != 1 {
		t.Errorf("%d fetches canceled, the origin is %s, %d cancels", r.canceled, s.origin, len(of[peer.Cancel](p)))
	}
	r.loads.release(other.load)
	late := r.waits(s, 0)
	r.loads.originCame(s, Fetched{Data: media(4)})
	late.load.over = true // before the turn in which the player hears of it
	if r.w.run(time.Millisecond); one.n+other.n+late.n != 0 {
		t.Error("the player is told of what it took back")
	}
}

// TestAPartThatDoesNotFitIsFetchedWhole: the whole will show whose fault it is.
func TestAPartThatDoesNotFitIsFetchedWhole(t *testing.T) {
	r := newRig(t)
	data := media(3)
	s := r.segment(0, data)
	r.store.open(s.id, int64(len(data)))
	r.store.put(s.id, 0, pieceOf(data, 0))
	o := r.waits(s, 0)
	r.loads.startOrigin(s, schedule.Urgent)
	r.answer(0, make([]byte, len(data)-segment.PieceSize), nil)
	if len(r.fetches) != 2 || r.fetches[1].Ranged || !r.line.wholes {
		t.Fatalf("fetches %+v", r.fetches)
	}
	r.answer(1, data, nil)
	if o.n != 1 || o.got.Len() != len(data) || !r.store.get(s.id).complete() {
		t.Errorf("the player has %+v", o.got)
	}
}
