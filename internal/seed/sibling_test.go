package seed_test

import (
	"bytes"
	"context"
	"net/netip"
	"testing"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/fleet"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/sibling"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// liar is a port that answers with what a test gives it.
type liar struct {
	answer func(q sibling.Question) (*sibling.Answer, error)
}

func (l liar) Ask(_ context.Context, _ signal.ID, _ fleet.Sibling, q sibling.Question, accept func([]byte, int) error) (*sibling.Answer, error) {
	a, err := l.answer(q)
	if err == nil && a.Certificate != nil {
		err = accept(a.Certificate, len(a.Data))
	}
	if err != nil {
		return nil, &fleet.AskError{Outcome: fleet.OutcomeInvalid, Cause: err}
	}
	return a, nil
}

func (l liar) Wanted(context.Context, signal.ID, fleet.Sibling) (sibling.Wanted, error) {
	return sibling.Wanted{}, nil
}

// TestASiblingIsNotBelieved: a certificate of an unknown key, of another segment or for other bytes is as good as none, and the
// segment comes from the origin.
func TestASiblingIsNotBelieved(t *testing.T) {
	o := newOrigin(t)
	o.film(2)
	honest := newWorld(t, o, nil)
	hv := honest.connect(1, 2)
	const name = "/film/low/0.m4s"
	right, _ := hv.certificate(name)
	other, _ := hv.certificate("/film/low/1.m4s")
	data := o.files[path(name)]
	stranger := newWorld(t, o, nil)
	strange, _ := stranger.connect(2, 2).certificate(name)
	if right == nil || other == nil || strange == nil {
		t.Fatal("no certificates to lie with")
	}
	wrong := bytes.Clone(data)
	wrong[len(wrong)-1] ^= 1
	for what, lie := range map[string]sibling.Answer{
		"a stranger's":           {Certificate: strange.Bytes(), Data: data},
		"another segment":        {Certificate: other.Bytes(), Data: o.files[path("/film/low/1.m4s")]},
		"other bytes":            {Certificate: right.Bytes(), Data: wrong},
		"fewer bytes":            {Certificate: right.Bytes(), Data: data[:len(data)-1]},
		"no bytes":               {Certificate: right.Bytes()},
		"no certificate":         {Certificate: []byte("certificate"), Data: data},
		"a signature of nothing": {Certificate: append(bytes.Clone(right.Bytes()[:len(right.Bytes())-1]), 0), Data: data},
	} {
		w := newWorld(t, o, func(_ *site.Config, c *seed.Config) {
			c.Fleet = fleet.New(fleet.Config{ID: sibling.FleetID{1}, Address: netip.MustParseAddrPort("10.0.0.1:4602"), Siblings: liar{func(sibling.Question) (*sibling.Answer, error) { return &lie, nil }}, Metrics: c.Metrics})
		})
		before := o.count(path(name))
		w.liesWith(honest, right.KeyID)
		got, none := w.connect(3, 2).certificate(name)
		if got == nil || got.KeyID == right.KeyID || got.KeyID == strange.KeyID || o.count(path(name)) != before+1 {
			t.Errorf("%s: %+v, reason %+v; the origin was asked %d times", what, got, none, o.count(path(name))-before)
		}
		w.stop()
	}
	// The same for the truth: it is taken.
	w := newWorld(t, o, func(_ *site.Config, c *seed.Config) {
		c.Fleet = fleet.New(fleet.Config{ID: sibling.FleetID{1}, Address: netip.MustParseAddrPort("10.0.0.1:4602"), Siblings: liar{func(sibling.Question) (*sibling.Answer, error) {
			return &sibling.Answer{Certificate: right.Bytes(), Data: data}, nil
		}}, Metrics: c.Metrics})
	})
	before := o.count(path(name))
	w.liesWith(honest, right.KeyID)
	if got, _ := w.connect(4, 2).certificate(name); got == nil || !bytes.Equal(got.Bytes(), right.Bytes()) || o.count(path(name)) != before {
		t.Error("the truth was not taken either")
	}
}

// liesWith has the seed hear of a sibling that signs with another's key, and owns every segment of the title.
func (w *world) liesWith(signer *world, key certificate.KeyID) {
	beat := wait(w.t, signer.keys, "a beat of the signer")
	if certificate.KeyID(beat.VerifyKeys[0].KeyID) != key {
		w.t.Fatal("another's beat")
	}
	beat.Seed = signal.ID{66}
	id := sibling.FleetID{1}
	beat.Fleet = &bus.SeedFleet{ID: id[:], Address: "10.0.0.2:4602"}
	raw, err := bus.Encode(&beat)
	if err != nil {
		w.t.Fatal(err)
	}
	w.bus.send(bus.SubjectSeedBeat, raw).Wait()
	title := w.title(2)
	title.Seeds = []signal.ID{beat.Seed}
	w.toSeed(&bus.SeedDelivery{Kind: bus.KindTitle, Title: title}).Wait()
}

// TestWhatMayNotBeSharedIsAskedForOnce: an owner's findings hold for the seed that asked.
func TestWhatMayNotBeSharedIsAskedForOnce(t *testing.T) {
	o := newOrigin(t)
	o.film(1)
	big := noise(9 << 20)
	o.put("/vod/film/low/0.m4s", big)
	c := newSeedFleet(t, o, 2)
	_, others := c.owner("/film/low/0.m4s")
	v := others[0].connect(1, 2)
	if _, none := v.certificate("/film/low/0.m4s"); none == nil || none.Reason != peer.NoneTooLarge || none.ObjectLength != uint64(len(big)) {
		t.Errorf("answer for a large object: %+v", none)
	}
	if n := o.count("/vod/film/low/0.m4s"); n != 1 {
		t.Errorf("the origin was asked %d times", n)
	}
	part := segment.RangeName("/film/low/0.m4s", 4<<20, 8<<20-1)
	got, none := v.certificate(part)
	if got == nil {
		t.Fatalf("no certificate for a virtual segment: reason %d", none.Reason)
	}
	if data, _ := v.fetch(got); !bytes.Equal(data, big[4<<20:8<<20]) {
		t.Error("a virtual segment has other bytes than its part of the object")
	}
	o.mu.Lock()
	o.head.Set("Set-Cookie", "id=1")
	o.mu.Unlock()
	_, others = c.owner("/film/high/0.m4s")
	v = others[0].connect(2, 2)
	if _, none := v.certificate("/film/high/0.m4s"); none == nil || none.Reason != peer.NoneNotAllowed || o.count("/vod/film/high/0.m4s") != 1 {
		t.Errorf("%+v, and the origin was asked %d times", none, o.count("/vod/film/high/0.m4s"))
	}
}
