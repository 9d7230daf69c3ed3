package viewer

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

const partDuration = 500 * time.Millisecond

// partRig is a rig whose player plays the parts of a stream, and a seed that pushes them.
type partRig struct {
	*rig
	seed     *friend
	stream   segment.ID
	adaptive bool // the player chooses its rendition
}

func newPartRig(t *testing.T) *partRig {
	r := &partRig{rig: newRig(t)}
	r.cfg.Parts, r.greeting.parts = true, true
	key, err := testKey().PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	set, err := certificate.NewKeySet(certificate.VerifyKey{KeyID: certificate.KeyIDOf(&testKey().PublicKey), Key: key, Sites: []string{"test"}})
	if err != nil {
		t.Fatal(err)
	}
	r.verification.keys = set
	r.stream = segment.NewID("test", segment.WholeName("/live/index.m3u8"))
	r.seed = r.speaker(3, schedule.Seed)
	return r
}

// speaker is a peer that speaks parts.
func (r *partRig) speaker(n byte, role schedule.Role) *friend {
	return r.peer(n, role, peer.SpeaksParts)
}

func partURL(n int) string { return fmt.Sprintf("http://film.test/live/part-%d.m4s", n) }

// plays has the player ask for part n of segment 7, which is listed with those before it, ahead of the playhead by so long.
func (r *partRig) plays(n int, ahead time.Duration) *outcome {
	o := &outcome{}
	q := request{
		Reference: Reference{URL: partURL(n), Duration: partDuration}, playlist: "http://film.test/live/index.m3u8", live: true, part: true, adaptive: r.adaptive,
		bitrate:  2_000_000,
		deadline: func() time.Duration { return ahead },
	}
	for i := range n + 1 {
		turn, _ := parts.Turn(7, i)
		q.turn = turn
		q.parts = append(q.parts, listedPart{turn, Reference{URL: partURL(i), Duration: partDuration}})
	}
	if r.loads.streams.load(q, func(got *Result, err error) { o.got, o.err, o.n = got, err, o.n+1 }) == nil {
		r.t.Fatal("the stream is not followed")
	}
	r.w.run(time.Millisecond)
	return o
}

// fed has the seed push all of part 1 to a player that has played part 0, so that it is the parent of all stripes.
func (r *partRig) fed(data []byte) {
	r.t.Helper()
	r.first(data)
	r.seed.joins(r)
	r.seed.pushes(r, 1, r.signs(1, data), data, 0, 1, 2, 3, 4)
	r.plays(1, time.Second)
}

// joins has a peer be the parent of all stripes from the next part on.
func (f *friend) joins(r *partRig) {
	for stripe := range peer.Stripes {
		f.says(peer.Follow{Stream: r.stream, On: true})
		f.says(peer.Place{Stream: r.stream, Stripe: uint8(stripe), Room: 2, Least: 255, Path: []parts.ID{{15: 3}}})
	}
	r.w.run(2 * parts.DecideEvery * time.Microsecond)
	if n := len(of[peer.Subscribe](f)); n != peer.Stripes {
		r.t.Fatalf("%d subscriptions", n)
	}
}

// pushes has a peer push pieces of part n.
func (f *friend) pushes(r *partRig, n int, raw, data []byte, pieces ...int) {
	turn, _ := parts.Turn(7, n)
	f.says(peer.Part{Stream: r.stream, Push: uint32(n), Turn: turn, Raw: raw})
	for _, i := range pieces {
		for at := 0; at < len(pieceOf(data, i)); at += 1024 {
			payload := pieceOf(data, i)[at:]
			b, err := peer.Append(nil, peer.Data{Request: peer.PushedID(uint32(n), i), Offset: uint16(at), Payload: payload[:min(1024, len(payload))]})
			if err != nil {
				r.t.Fatal(err)
			}
			f.session.Data(b)
		}
	}
	r.w.run(10 * time.Millisecond)
}

func (r *partRig) signs(n int, data []byte) []byte {
	return issue(r.w, segment.WholeName(fmt.Sprintf("/live/part-%d.m4s", n)), data)
}

// first has the origin serve part 0, so that the stream is followed.
func (r *partRig) first(data []byte) {
	r.t.Helper()
	o := r.plays(0, time.Second)
	if len(r.fetches) != 1 || r.fetches[0].Ranged {
		r.t.Fatalf("the origin was asked %+v", r.fetches)
	}
	r.answer(0, data, nil)
	if o.n != 1 || !bytes.Equal(bytes.Join(o.got.Pieces, nil), data) || o.got.Source != FromOrigin {
		r.t.Fatalf("%+v", o)
	}
	r.fetches, r.answers = nil, nil
}
