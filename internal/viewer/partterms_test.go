package viewer

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestAViewerThatMaySendLessTakesFewerChildren: what its site, or its line, lets it send has changed since it followed the stream.
func TestAViewerThatMaySendLessTakesFewerChildren(t *testing.T) {
	for name, change := range map[string]func(*partRig){
		"it sends nothing any more":        func(r *partRig) { r.rig.uploads = false },
		"it sends less than a stripe does": func(r *partRig) { r.pacing.cap(400) },
	} {
		r, data := newPartRig(t), media(5)
		child := r.speaker(2, schedule.Viewer)
		r.fed(data)
		child.says(peer.Follow{Stream: r.stream, On: true})
		for stripe := range peer.Stripes {
			child.says(peer.Subscribe{Stream: r.stream, Stripe: uint8(stripe), Slots: 1})
		}
		r.plays(2, time.Second)
		if n := len(of[peer.End](child)); n > 0 {
			t.Fatalf("%d subscriptions are over", n)
		}
		change(r)
		r.plays(3, time.Second)
		if n := len(of[peer.End](child)); n != peer.Stripes {
			t.Errorf("%s: %d subscriptions are over", name, n)
		}
		r.seed.says(peer.Place{Stream: r.stream, Room: 2, Least: 255, Path: []parts.ID{{15: 3}}})
		r.w.run(2 * parts.DecideEvery * time.Microsecond)
		if said := of[peer.Subscribe](r.seed); len(said) != peer.Stripes+1 || said[peer.Stripes].Slots != 0 {
			t.Errorf("%s: it says that it takes children: %+v", name, said)
		}
	}
}

// TestAPartOfAnotherHostIsTheOriginsAlone: no peer has it, so none is waited for and none has missed it.
func TestAPartOfAnotherHostIsTheOriginsAlone(t *testing.T) {
	r, data := newPartRig(t), media(5)
	r.fed(data)
	q := request{
		Reference: Reference{URL: "http://adverts.test/part-2.m4s", Duration: partDuration}, playlist: "http://film.test/live/index.m3u8",
		live: true, part: true, bitrate: 2_000_000, deadline: func() time.Duration { return 1500 * time.Millisecond },
	}
	q.turn, _ = parts.Turn(7, 2)
	q.parts = []listedPart{{q.turn, q.Reference}}
	if r.loads.streams.load(q, func(*Result, error) {}) != nil {
		t.Error("it is waited for")
	}
}

// TestTwoTracksOfOnePlaylist: a variant of sound alone has the playlist of the sound. One track follows the stream, and the origin has the
// parts of the other; so it is when the first plays something else.
func TestTwoTracksOfOnePlaylist(t *testing.T) {
	r, data := newPartRig(t), media(5)
	asks := func(track, n int, playlist string) (o *outcome, follows bool) {
		o = &outcome{}
		turn, _ := parts.Turn(7, n)
		q := request{
			Reference: Reference{URL: partURL(n), Duration: partDuration}, playlist: "http://film.test/live/" + playlist, live: true, part: true,
			bitrate: 2_000_000, deadline: func() time.Duration { return time.Second }, track: track, turn: turn,
		}
		q.parts = []listedPart{{turn, q.Reference}}
		follows = r.loads.streams.load(q, func(got *Result, err error) { o.got, o.err, o.n = got, err, o.n+1 }) != nil
		r.w.run(time.Millisecond)
		return o, follows
	}
	first, follows := asks(0, 0, "sound.m3u8")
	if _, too := asks(1, 0, "sound.m3u8"); !follows || too || len(r.fetches) != 1 {
		t.Fatalf("follows %v and %v; the origin was asked %+v", follows, too, r.fetches)
	}
	if r.answer(0, data, nil); first.n != 1 || first.err != nil {
		t.Errorf("the first track has %+v", first)
	}
	if _, follows := asks(0, 1, "picture.m3u8"); !follows {
		t.Error("the first track does not follow what it plays now")
	}
	if _, follows := asks(1, 1, "sound.m3u8"); !follows {
		t.Error("the second track does not follow the stream that the first has left")
	}
}

// TestAnOriginThatRefusesRangesIsAskedForAllOfAPart: the player hears of no error.
func TestAnOriginThatRefusesRangesIsAskedForAllOfAPart(t *testing.T) {
	r, data := newPartRig(t), media(5)
	r.fed(data)
	r.seed.pushes(r, 2, r.signs(2, data), data, 0, 1)
	o := r.plays(2, 1500*time.Millisecond)
	r.w.run(time.Second)
	r.answer(0, nil, errors.New("416"))
	if o.n != 0 || len(r.fetches) != 2 || r.fetches[1].Ranged {
		t.Fatalf("%+v, the origin was asked %+v", o, r.fetches)
	}
	r.answer(1, data, nil)
	if o.n != 1 || o.err != nil || !bytes.Equal(bytes.Join(o.got.Pieces, nil), data) {
		t.Errorf("%+v", o)
	}
}

// TestAnOriginWithoutRangesIsAskedForNoMore of them: each would bring all of the part once more.
func TestAnOriginWithoutRangesIsAskedForNoMore(t *testing.T) {
	r, data := newPartRig(t), media(5)
	r.fed(data)
	for n := 2; n < 4; n++ {
		r.fetches, r.answers = nil, nil
		r.seed.pushes(r, n, r.signs(n, data), data, 0)
		o := r.plays(n, 1500*time.Millisecond)
		r.w.run(time.Second)
		for i := 0; o.n == 0; i++ {
			r.answer(i, data, nil)
		}
		if len(r.fetches) != 4-n {
			t.Errorf("part %d: the origin was asked %+v", n, r.fetches)
		}
	}
}
