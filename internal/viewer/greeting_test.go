package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func TestAnnouncements(t *testing.T) {
	data := media(3)
	for name, c := range map[string]struct {
		pieces  int // that are held; -1: the segment is not open
		waits   bool
		uploads bool
		state   peer.State
		ok      bool
	}{
		"nothing":                      {-1, true, true, 0, false},
		"opened without a load":        {0, false, true, 0, false},
		"opened, and the player waits": {0, true, true, peer.HoldsPartial, true},
		"a part":                       {2, false, true, peer.HoldsPartial, true},
		"all":                          {3, false, true, peer.HoldsComplete, true},
		"all, and nothing is given":    {3, false, false, 0, false},
	} {
		r := newRig(t)
		r.uploads = c.uploads
		s := r.segment(0, data)
		if c.waits {
			r.waits(s, 0)
		}
		if c.pieces >= 0 {
			r.store.open(s.id, int64(len(data)))
		}
		for n := range max(0, c.pieces) {
			r.store.put(s.id, n, pieceOf(data, n))
		}
		entry, ok := r.greeting.announcement(s.id)
		if ok != c.ok || ok && (entry.State != c.state || entry.Segment != s.key || entry.Pieces != 3) {
			t.Errorf("%s: %+v, %v", name, entry, ok)
		}
		if held := 0; entry.State == peer.HoldsPartial {
			for n := range 3 {
				if peer.BitmapHas(entry.Bitmap, n) {
					held++
				}
			}
			if held != c.pieces {
				t.Errorf("%s: %d pieces are announced", name, held)
			}
		}
	}
}

// TestAnAnswerSaysWhatFits: hello first, then what is held, the oldest first, within the bound; certificates of what is wanted.
func TestAnAnswerSaysWhatFits(t *testing.T) {
	r := newRig(t)
	data := media(1)
	var all []string
	for n := range 20 {
		s := r.segment(n, data)
		r.store.open(s.id, int64(len(data)))
		r.store.put(s.id, 0, data)
		all = append(all, s.id)
	}
	said, held := r.greeting.first(&noted{path: transfer.Direct}, []signal.ID{signal.ID(r.segment(25, nil).key)})
	if len(said) != 2 || len(held) != len(all) || held[0] != all[0] {
		t.Fatalf("%d messages, %d of %d segments", len(said), len(held), len(all))
	}
	first, err := peer.Decode(peer.Control, said[0])
	if hello, ok := first.(peer.Hello); err != nil || !ok || hello.Flags != 0 || hello.MaxRequests != ownMaxRequests {
		t.Errorf("first %+v, %v", first, err)
	}
	second, err := peer.Decode(peer.Control, said[1])
	if have, ok := second.(peer.Have); err != nil || !ok || len(have.Entries) != len(all) {
		t.Errorf("then %T, %v", second, err)
	}
	r.uploads = false
	if said, held = r.greeting.first(&noted{}, nil); len(said) != 1 || held != nil || r.greeting.hello(&noted{}).Flags != peer.NoUpload {
		t.Errorf("%d messages of a viewer that gives nothing", len(said))
	}
}

// TestASeedIsToldOfWholeSegmentsOfLiveStreamsAlone, once each: it asks no viewer, and counts how late viewers have them.
func TestASeedIsToldOfWholeSegmentsOfLiveStreamsAlone(t *testing.T) {
	data := media(2)
	for _, live := range []bool{true, false} {
		for _, uploads := range []bool{true, false} {
			r := newRig(t)
			r.uploads = uploads
			seed, other := r.peer(2, schedule.Seed, peer.OnDemand), r.peer(3, schedule.Viewer, 0)
			s := r.segment(0, data)
			r.waits(s, time.Minute)
			r.view.asked(request{live: live, deadline: func() time.Duration { return time.Minute }})
			r.piece(other, s, 0, pieceOf(data, 0))
			if said := of[peer.Have](seed); len(said) != 0 {
				t.Errorf("live %v: a seed is told of a part: %+v", live, said)
			}
			r.piece(other, s, 1, pieceOf(data, 1))
			r.w.run(time.Second)
			said := of[peer.Have](seed)
			if !live || !uploads {
				if len(said) != 0 {
					t.Errorf("live %v, uploads %v: a seed is told %+v", live, uploads, said)
				}
				continue
			}
			if len(said) != 1 || len(said[0].Entries) != 1 || said[0].Entries[0].Segment != s.key || said[0].Entries[0].State != peer.HoldsComplete {
				t.Errorf("a seed is told %+v", said)
			}
		}
	}
}
