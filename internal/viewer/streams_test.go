package viewer

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/mesh"
	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestPartsOfAPeerAreGivenToThePlayer without a request to the origin.
func TestPartsOfAPeerAreGivenToThePlayer(t *testing.T) {
	r, data := newPartRig(t), media(5)
	r.first(data)
	if n := len(of[peer.Follow](r.seed)); n != 1 {
		t.Errorf("the seed was told of %d streams", n)
	}
	r.seed.joins(r)
	r.seed.pushes(r, 1, r.signs(1, data), data, 0, 1, 2, 3, 4)
	o := r.plays(1, time.Second)
	if o.n != 1 || o.got.Source != FromSeed || !bytes.Equal(bytes.Join(o.got.Pieces, nil), data) || len(r.fetches) > 0 {
		t.Errorf("%+v, the origin was asked %+v", o.got, r.fetches)
	}
	s := r.ledger.sum()
	if s.Bytes["seed"] != int64(len(data)) || !maps.Equal(s.Parts, map[string]int64{"origin": 1, "seed": 1, "hops": 1, "lost": 0}) {
		t.Errorf("%v %v", s.Bytes, s.Parts)
	}
	for stripe := range uint8(peer.Stripes) {
		r.seed.says(peer.End{Stream: r.stream, Stripe: stripe})
	}
	r.plays(2, time.Second)
	r.answer(0, data, nil)
	if s := r.ledger.sum(); s.Parts["origin"] != 2 || s.Parts["lost"] != peer.Stripes {
		t.Errorf("without the seed: %v", s.Parts)
	}
}

// TestTheLineIsMeasuredBeforePeersBringAll: a player that chooses its rendition would stay with the first one.
func TestTheLineIsMeasuredBeforePeersBringAll(t *testing.T) {
	for _, c := range []struct {
		name   string
		failed error
		source Source
	}{{"the origin answers", nil, FromOrigin}, {"the origin fails", errors.New("503"), FromSeed}} {
		t.Run(c.name, func(t *testing.T) {
			r, data := newPartRig(t), media(2)
			r.adaptive = true
			r.first(data) // too short for a measurement
			r.seed.joins(r)
			r.seed.pushes(r, 1, r.signs(1, data), data, 0, 1)
			o := r.plays(1, time.Second)
			if len(r.fetches) != 1 || r.fetches[0].Ranged || o.n != 0 {
				t.Fatalf("%+v, the origin was asked %+v", o, r.fetches)
			}
			r.answer(0, data, c.failed)
			if o.n != 1 || o.err != nil || o.got.Source != c.source || !bytes.Equal(bytes.Join(o.got.Pieces, nil), data) {
				t.Fatalf("%+v", o)
			}
			r.line.sample(leastSample, 100*time.Millisecond, 0, r.w.now)
			r.fetches, r.answers = nil, nil
			r.seed.pushes(r, 2, r.signs(2, data), data, 0, 1)
			if o = r.plays(2, time.Second); o.n != 1 || len(r.fetches) > 0 || o.got.Source != FromSeed {
				t.Errorf("%s %v, the origin was asked %+v", o.got.Source, o.got.Bytes, r.fetches)
			}
		})
	}
}

// TestTheLineIsMeasuredAgain after a minute, by as many parts as make a measurement. Peers hold back meanwhile, so that it is the line's.
func TestTheLineIsMeasuredAgain(t *testing.T) {
	r, data := newPartRig(t), media(5)
	r.adaptive = true
	r.fed(data)
	r.line.capacity, r.line.parts, r.loads.streams.fresh.looked = capacity{}, shortParts{}, time.Time{}
	r.line.sample(leastSample, 100*time.Millisecond, 0, r.w.now.Add(-capacityFresh))
	for n, pieces := range []int{3, 2} {
		o := r.plays(n+2, time.Second)
		held := of[peer.Hold](r.seed)
		if len(r.fetches) != 1 || r.fetches[0].Ranged || len(held) != 2*n+1 || !held[2*n].On {
			t.Fatalf("part %d: the origin was asked %+v, holds: %+v", n, r.fetches, held)
		}
		r.answer(0, media(pieces), nil)
		if held = of[peer.Hold](r.seed); o.n != 1 || o.got.Source != FromOrigin || len(held) != 2*n+2 || held[2*n+1].On {
			t.Fatalf("part %d: %+v, holds: %+v", n, o, held)
		}
		r.fetches, r.answers = nil, nil
	}
	r.seed.pushes(r, 4, r.signs(4, data), data, 0, 1, 2, 3, 4)
	if o := r.plays(4, time.Second); o.n != 1 || len(r.fetches) > 0 || o.got.Source != FromSeed {
		t.Errorf("measured: %+v, the origin was asked %+v", o.got, r.fetches)
	}
}

// TestAnOriginThatFailsKeepsNoPeerBack: neither is the line measured, nor is its time kept for it, until half a minute after its error.
func TestAnOriginThatFailsKeepsNoPeerBack(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"while it is measured": time.Second, "with a short buffer": 100 * time.Millisecond} {
		r, data := newPartRig(t), media(5)
		r.adaptive = true
		r.fed(data)
		r.line.capacity, r.line.parts, r.loads.streams.fresh.looked = capacity{}, shortParts{}, time.Time{}
		r.line.sample(leastSample, 100*time.Millisecond, 0, r.w.now.Add(-capacityFresh))
		o := r.plays(2, ahead)
		for i := 0; o.n == 0; i++ {
			r.answer(i, nil, errors.New("503"))
		}
		r.fetches, r.answers = nil, nil
		again := func() {
			r.seed.pushes(r, 2, r.signs(2, data), data, 0, 1, 2, 3, 4)
			o = r.plays(2, time.Second)
		}
		if again(); o.n != 1 || o.got.Source != FromSeed || len(r.fetches) > 0 {
			t.Errorf("%s: %+v, the origin was asked %+v", name, o, r.fetches)
		}
		if held := of[peer.Hold](r.seed); len(held) != 2 || held[1].On {
			t.Errorf("%s: %+v", name, held)
		}
		r.w.run(originRest)
		if r.plays(3, time.Second); !r.loads.streams.tracks[0].load.looks {
			t.Errorf("%s: the line is not measured half a minute later", name)
		}
	}
}

// TestPeersHoldBackWhereTheOriginIsAskedSoon, until there is time for them again.
func TestPeersHoldBackWhereTheOriginIsAskedSoon(t *testing.T) {
	r, data := newPartRig(t), media(5)
	r.fed(data)
	for i, c := range []struct {
		rate  int // bit/s
		ahead time.Duration
		on    []bool // holds since the beginning
	}{
		{8_000_000, 600 * time.Millisecond, nil},
		{1_000_000, 1300 * time.Millisecond, []bool{true, false}},
		{8_000_000, 400 * time.Millisecond, []bool{true, false, true, false}},
		{8_000_000, 600 * time.Millisecond, []bool{true, false, true, false}},
	} {
		r.fetches, r.answers = nil, nil
		r.line.capacity, r.line.answer = capacity{}, 0
		r.line.sample(leastSample, time.Duration(leastSample*8*int64(time.Second)/int64(c.rate)), 0, r.w.now)
		o := r.plays(2+i, c.ahead)
		if len(r.fetches) == 0 {
			r.w.run(time.Second)
		}
		r.answer(0, data, nil)
		var on []bool
		for _, m := range of[peer.Hold](r.seed) {
			on = append(on, m.On)
		}
		if o.n != 1 || !slices.Equal(on, c.on) {
			t.Errorf("%d bit/s, %s ahead: %+v, holds %v", c.rate, c.ahead, o, on)
		}
	}
}

// TestWhatPeersDoNotBringInTimeTheOriginDoes: one request for each run.
func TestWhatPeersDoNotBringInTimeTheOriginDoes(t *testing.T) {
	r, data := newPartRig(t), media(5)
	r.fed(data)
	r.seed.pushes(r, 2, r.signs(2, data), data, 0, 1)
	o := r.plays(2, 1500*time.Millisecond)
	if o.n != 0 || len(r.fetches) > 0 {
		t.Fatalf("nothing is waited for: %+v, %+v", o.got, r.fetches)
	}
	r.w.run(time.Second)
	if len(r.fetches) != 1 || !r.fetches[0].Ranged || r.fetches[0].First != 2*segment.PieceSize || r.fetches[0].Last != int64(len(data))-1 {
		t.Fatalf("the origin was asked %+v", r.fetches)
	}
	if n := len(of[peer.Enough](r.seed)); n != 1 {
		t.Errorf("enough was said %d times", n)
	}
	r.answer(0, data[2*segment.PieceSize:], nil)
	if o.n != 1 || !bytes.Equal(bytes.Join(o.got.Pieces, nil), data) || o.got.Bytes[FromOrigin] == 0 || o.got.Bytes[FromSeed] != 2*segment.PieceSize {
		t.Errorf("%+v", o)
	}
}

// TestAnOriginThatContradictsIsPlayedWhole: pieces of two versions are never mixed.
func TestAnOriginThatContradictsIsPlayedWhole(t *testing.T) {
	r, data := newPartRig(t), media(5)
	r.fed(data)
	r.seed.pushes(r, 2, r.signs(2, data), data, 0, 1)
	o := r.plays(2, 1500*time.Millisecond)
	r.w.run(time.Second)
	other := bytes.Repeat([]byte{7}, len(data))
	r.answer(0, other[2*segment.PieceSize:], nil)
	if o.n != 0 || len(r.fetches) != 2 || r.fetches[1].Ranged {
		t.Fatalf("%+v, the origin was asked %+v", o.got, r.fetches)
	}
	r.answer(1, other, nil)
	if o.n != 1 || !bytes.Equal(bytes.Join(o.got.Pieces, nil), other) || o.got.Source != FromOrigin || r.ledger.sum().Contradictions != 1 {
		t.Errorf("%+v, %d contradictions", o, r.ledger.sum().Contradictions)
	}
}

// TestAnOriginWithoutRangesSendsAllOfAPart, once, whatever number of runs it was asked for.
func TestAnOriginWithoutRangesSendsAllOfAPart(t *testing.T) {
	for runs, pushed := range map[int][]int{1: {0}, 2: {0, 2, 4}} {
		r, data := newPartRig(t), media(5)
		r.fed(data)
		r.seed.pushes(r, 2, r.signs(2, data), data, pushed...)
		o := r.plays(2, 1500*time.Millisecond)
		r.w.run(time.Second)
		if len(r.fetches) != runs {
			t.Fatalf("the origin was asked %+v, not for %d runs", r.fetches, runs)
		}
		for run := range runs {
			r.answer(run, data, nil)
		}
		if len(r.fetches) != runs+1 || r.fetches[runs].Ranged {
			t.Fatalf("the origin was asked %+v", r.fetches)
		}
		r.answer(runs, data, nil)
		if o.n != 1 || !bytes.Equal(bytes.Join(o.got.Pieces, nil), data) {
			t.Errorf("%+v", o)
		}
	}
}

// TestPeersThatPushWrongPartsAreDropped: a forged certificate ends the link, a wrong piece bans the peer.
func TestPeersThatPushWrongPartsAreDropped(t *testing.T) {
	for name, c := range map[string]struct {
		wrong func(r *partRig, data []byte)
		ended peer.CloseReason
	}{
		"a certificate that is none": {func(r *partRig, data []byte) { r.seed.pushes(r, 1, []byte("certificate"), data) }, peer.CloseProtocol},
		"a signature that is not the seed's": {func(r *partRig, data []byte) {
			raw := r.signs(1, data)
			raw[len(raw)-1] ^= 1
			r.seed.pushes(r, 1, raw, data)
		}, peer.CloseProtocol},
		"a wrong piece": {func(r *partRig, data []byte) {
			r.seed.pushes(r, 1, r.signs(1, data), bytes.Repeat([]byte{7}, len(data)), 0)
		}, peer.CloseBadPiece},
	} {
		t.Run(name, func(t *testing.T) {
			r, data := newPartRig(t), media(5)
			r.first(data)
			r.seed.joins(r)
			c.wrong(r, data)
			if r.seed.noted.ended != c.ended || len(r.banned) != 1 {
				t.Errorf("the link ended %q, %d are banned", r.seed.noted.ended, len(r.banned))
			}
			// The player is served as without it.
			o := r.plays(1, time.Second)
			if len(r.fetches) != 1 {
				t.Fatalf("the origin was asked %+v", r.fetches)
			}
			r.answer(0, data, nil)
			if o.n != 1 || !bytes.Equal(bytes.Join(o.got.Pieces, nil), data) {
				t.Errorf("%+v", o)
			}
		})
	}
}

// TestASecondCopyIsWasted, and one that differs is rejected, and bans: the origin has sent the piece before.
func TestASecondCopyIsWasted(t *testing.T) {
	for ended, c := range map[peer.CloseReason]struct {
		flip             byte
		rejected, wasted int64
	}{"": {0, 0, segment.PieceSize}, peer.CloseBadPiece: {1, segment.PieceSize, 0}} {
		r, data := newPartRig(t), media(5)
		r.first(data)
		r.seed.joins(r)
		r.plays(1, time.Second)
		r.answer(0, data, nil)
		copied := bytes.Clone(data)
		copied[0] ^= c.flip
		r.seed.pushes(r, 1, r.signs(1, data), copied, 0)
		s := r.ledger.sum()
		if r.seed.noted.ended != ended || s.RejectedBytes != c.rejected || s.WastedBytes != c.wasted {
			t.Errorf("the link ended %q, not %q; %d bytes rejected, %d wasted", r.seed.noted.ended, ended, s.RejectedBytes, s.WastedBytes)
		}
	}
}

// TestPartsGoOnToChildren as soon as they are verified.
func TestPartsGoOnToChildren(t *testing.T) {
	r, data := newPartRig(t), media(5)
	child := r.speaker(2, schedule.Viewer)
	r.first(data)
	r.seed.joins(r)
	r.seed.pushes(r, 1, r.signs(1, data), data, 0, 1, 2, 3, 4)
	child.says(peer.Follow{Stream: r.stream, On: true})
	for stripe := range peer.Stripes {
		child.says(peer.Subscribe{Stream: r.stream, Stripe: uint8(stripe), Slots: 1})
	}
	r.w.run(parts.DecideEvery * time.Microsecond)
	r.seed.pushes(r, 2, r.signs(2, data), data, 0, 1, 2, 3, 4)
	r.w.run(time.Second)
	if n := len(of[peer.Part](child)); n != 1 || len(of[peer.End](child)) > 0 {
		t.Errorf("the child was told %d parts, %d subscriptions were refused", n, len(of[peer.End](child)))
	}
	if s := r.ledger.sum(); s.Uploaded["direct"] != int64(len(data)) {
		t.Errorf("%v were pushed on", s.Uploaded)
	}
}

// TestTheSiteBoundsTheChildren of a viewer: each takes a quarter of the stream.
func TestTheSiteBoundsTheChildren(t *testing.T) {
	for _, c := range []struct{ kbps, bitrate, slots int64 }{
		{0, 2_000_000, mesh.MaxChildren}, {100_000, 2_000_000, mesh.MaxChildren}, {1_600, 2_000_000, 3}, {400, 2_000_000, 0}, {400, 0, mesh.MaxChildren},
	} {
		if got := slots(c.kbps, c.bitrate); got != int(c.slots) {
			t.Errorf("%+v: %d children", c, got)
		}
	}
}

// TestAStreamIsLeft when segments are played instead, when sharing is off, and at the end: the player gets what it waits for.
func TestAStreamIsLeft(t *testing.T) {
	for name, leave := range map[string]func(*partRig){
		"segments": func(r *partRig) { r.loads.streams.leave(0) },
		"off":      func(r *partRig) { r.setOff(schedule.ByPolicy) },
		"the end":  func(r *partRig) { r.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			r, data := newPartRig(t), media(5)
			r.first(data)
			r.seed.joins(r)
			r.seed.pushes(r, 1, r.signs(1, data), data, 0, 1, 2, 3, 4)
			r.plays(1, time.Second)
			o := r.plays(2, 1500*time.Millisecond)
			if len(r.fetches) > 0 {
				t.Fatalf("the origin was asked %+v at once", r.fetches)
			}
			leave(r)
			r.w.run(time.Millisecond)
			if len(r.fetches) != 1 || r.fetches[0].Ranged {
				t.Fatalf("the origin was asked %+v", r.fetches)
			}
			r.answer(0, data, nil)
			if o.n != 1 || !bytes.Equal(bytes.Join(o.got.Pieces, nil), data) || len(r.loads.streams.tracks) > 0 || r.loads.streams.tick != nil {
				t.Errorf("%+v; %d streams are followed", o, len(r.loads.streams.tracks))
			}
		})
	}
}

// TestAPlayerTakesItsRequestBack: nothing comes for it any more, and what it asks for next does.
func TestAPlayerTakesItsRequestBack(t *testing.T) {
	r, data := newPartRig(t), media(5)
	r.first(data)
	o := r.plays(1, time.Second)
	r.loads.streams.abort(r.loads.streams.tracks[0].load)
	r.answer(0, data, nil)
	if next := r.plays(2, time.Second); o.n != 0 || r.canceled == 0 || next.n != 0 || len(r.fetches) != 2 {
		t.Errorf("%+v, %d canceled, %+v", o, r.canceled, r.fetches)
	}
	r.answer(1, nil, fmt.Errorf("the origin is down"))
	r.w.run(time.Millisecond)
	if r.loads.streams.tracks[0].load != nil {
		t.Error("a failed request is waited for")
	}
}

// TestAShortPartSaysNothingOfTheOthers: all times of a stream are in parts, and a player may begin with the last part of a segment.
func TestAShortPartSaysNothingOfTheOthers(t *testing.T) {
	r := newPartRig(t)
	q := request{playlist: "http://film.test/live/index.m3u8", live: true, part: true, deadline: func() time.Duration { return time.Second }}
	for n, long := range []time.Duration{partDuration, 10 * time.Millisecond} {
		q.turn, _ = parts.Turn(7, n)
		q.Reference = Reference{URL: partURL(n), Duration: long}
		q.parts = append(q.parts, listedPart{q.turn, q.Reference})
	}
	r.loads.streams.load(q, func(*Result, error) {})
	r.w.run(time.Millisecond)
	r.answer(0, media(1), nil)
	if r.w.run(partDuration); len(of[peer.Follow](r.seed)) != 1 {
		t.Error("the stream is left")
	}
}
