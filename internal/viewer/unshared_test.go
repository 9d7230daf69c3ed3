package viewer

import (
	"bytes"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// strict is an origin whose responses say that they are not to be stored.
type strict struct{ origin }

func (o strict) Get(f Fetch, progress func(int64), done func(Fetched, error)) func() {
	return o.origin.Get(f, progress, func(got Fetched, err error) {
		got.Unshared = true
		done(got, err)
	})
}

// TestWhatTheOriginWantsNotStoredIsPlayedAndNotKept: it comes from before the engine is there, and beside a seed that is slow.
func TestWhatTheOriginWantsNotStoredIsPlayedAndNotKept(t *testing.T) {
	const segments, size = 16, 300_000
	s := newScene(t, fourSeconds(segments, size))
	s.wrap = func(o origin) Origin { return strict{o} }
	s.seed.node.up.Rate = 30_000 // below the bitrate: some segments are the origin's
	a := s.viewer(access{up: 1e6, down: 4e6}, nil)
	s.w.run(40 * time.Second)
	st := a.now().Stats
	if len(a.results) < 8 || a.wrong > 0 || st.Stalls > 0 || st.Bytes["origin"] < size {
		t.Fatalf("%d segments, %d stalls, %v", len(a.results), st.Stalls, st.Bytes)
	}
	e, held := a.title.engine, int64(0)
	for _, id := range e.store.ids() {
		for _, p := range e.store.get(id).pieces {
			held += int64(len(p))
		}
	}
	if held == 0 || held > st.Bytes["seed"] {
		t.Errorf("%d bytes are held, the seed sent %d and the origin %d", held, st.Bytes["seed"], st.Bytes["origin"])
	}
}

// TestWhatTheOriginWantsNotStoredIsNotJoined with pieces of a peer that brings a part of each segment by the time that it is urgent.
func TestWhatTheOriginWantsNotStoredIsNotJoined(t *testing.T) {
	const segments, size = 16, 1_000_000
	for _, joins := range []bool{false, true} {
		s := newScene(t, fourSeconds(segments, size))
		s.viewer(access{up: 60_000, down: 4e6}, nil)
		s.w.run(6 * time.Second)
		s.tracker.seed = nil
		if !joins {
			s.wrap = func(o origin) Origin { return strict{o} }
		}
		late := s.viewer(access{up: 60_000, down: 4e6}, nil)
		s.w.run(80 * time.Second)
		s.check()
		joined := 0
		for _, r := range late.results {
			if r.Bytes[FromPeer] > 0 && r.Bytes[FromOrigin] > 0 {
				joined++
			}
		}
		if len(late.results) != segments || joined > 0 != joins {
			t.Errorf("%d of %d segments are joined", joined, len(late.results))
		}
	}
}

// TestAPartThatIsNotToBeStoredIsPlayedAndNotPassedOn: the seed has pushed two pieces of it, and a child gets those alone.
func TestAPartThatIsNotToBeStoredIsPlayedAndNotPassedOn(t *testing.T) {
	const pushed = 2 * segment.PieceSize
	for _, unshared := range []bool{true, false} {
		r, data := newPartRig(t), media(5)
		child := r.speaker(2, schedule.Viewer)
		r.fed(data)
		child.says(peer.Follow{Stream: r.stream, On: true})
		for stripe := range peer.Stripes {
			child.says(peer.Subscribe{Stream: r.stream, Stripe: uint8(stripe), Slots: 1})
		}
		r.w.run(parts.DecideEvery * time.Microsecond)
		r.seed.pushes(r, 2, r.signs(2, data), data, 0, 1)
		o := r.plays(2, 1500*time.Millisecond)
		r.w.run(time.Second)
		fromSeed, passed := int64(pushed), int64(len(data))
		r.answers[0](Fetched{Data: data[pushed:], Unshared: unshared}, nil)
		r.w.run(time.Millisecond)
		if unshared {
			if o.n != 0 || len(r.fetches) != 2 || r.fetches[1].Ranged {
				t.Fatalf("%+v, the origin was asked %+v", o.got, r.fetches)
			}
			r.answers[1](Fetched{Data: data, Unshared: true}, nil)
			fromSeed, passed = 0, pushed
		}
		r.w.run(time.Second)
		if o.n != 1 || !bytes.Equal(bytes.Join(o.got.Pieces, nil), data) || o.got.Bytes[FromSeed] != fromSeed {
			t.Errorf("unshared %t: %+v", unshared, o)
		}
		if got := r.ledger.sum().Uploaded["direct"]; got != passed {
			t.Errorf("unshared %t: %d bytes went on to the child, want %d", unshared, got, passed)
		}
	}
}

// TestChunksThatAreNotToBeStoredArePlayedAndNotPassedOn, though their certificates are there: it is known with the first byte.
func TestChunksThatAreNotToBeStoredArePlayedAndNotPassedOn(t *testing.T) {
	for _, unshared := range []bool{true, false} {
		s, c, _ := newPackagedChunks(t)
		c.unshared = unshared
		c.audience(3, 30*time.Second)
		s.w.run(30 * time.Second)
		s.fine()
		if got := s.share(FromPeer, 0); got > 0 == unshared {
			t.Errorf("unshared %t: %.2f is of viewers", unshared, got)
		}
	}
}
