package viewer

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// packagedRig plays a stream of which a packager signs the parts. Another viewer follows it, and no seed does.
func packagedRig(t *testing.T) (r *partRig, child *friend) {
	t.Helper()
	r = newPartRig(t)
	var keys []certificate.VerifyKey
	for alg, key := range map[certificate.Alg]certificate.VerifyKey{
		certificate.Seed:     {KeyID: certificate.KeyIDOf(&testKey().PublicKey)},
		certificate.Packager: {KeyID: certificate.KeyIDOf(&packagerKey().PublicKey), Key: packagerVerifyKey().Key},
	} {
		if alg == certificate.Seed {
			key.Key, _ = testKey().PublicKey.Bytes()
		}
		key.Alg, key.Sites = alg, []string{"test"}
		keys = append(keys, key)
	}
	set, err := certificate.NewKeySet(keys...)
	if err != nil {
		t.Fatal(err)
	}
	r.verification.keys = set
	child = r.speaker(2, schedule.Viewer)
	r.first(media(5))
	child.says(peer.Follow{Stream: r.stream, On: true})
	return r, child
}

// packages is what the packager has signed of part n.
func (r *partRig) packages(n int, data []byte) []byte {
	raw, err := certificate.Issue(nil, packagerKey(), certificate.Certificate{
		Alg: certificate.Packager, IssuedAt: r.w.now, NotAfter: r.w.now.Add(certificate.PartLife), ObjectLength: int64(len(data)), Length: int64(len(data)),
		Site: "test", Name: segment.WholeName(fmt.Sprintf("/live/part-%d.m4s", n)), Digests: certificate.DigestPieces(data),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return raw
}

// sources is of how many stripes a peer was told last that this viewer is the source.
func (f *friend) sources() (count int) {
	last := map[uint8]uint64{}
	for _, p := range of[peer.Place](f) {
		last[p.Stripe] = p.Rank
	}
	for _, rank := range last {
		if rank != peer.MaxRank {
			count++
		}
	}
	return count
}

// TestASourceLoadsThePackagersCertificates, and pushes what the origin sends: there is no seed.
func TestASourceLoadsThePackagersCertificates(t *testing.T) {
	r, child := packagedRig(t)
	data := media(5)
	o := r.plays(1, time.Second)
	if len(r.fetches) != 2 || r.fetches[1] != (Fetch{URL: partURL(1) + ".leeway", MaxBytes: certificate.MaxSize}) {
		t.Fatalf("the origin was asked %+v", r.fetches)
	}
	r.answer(0, data, nil) // it comes ahead of the certificate, and is played
	if o.n != 1 || o.got.Source != FromOrigin {
		t.Fatalf("%+v", o)
	}
	r.answer(1, r.packages(1, data), nil)
	r.w.run(time.Second)
	if n := child.sources(); n != peer.Stripes {
		t.Fatalf("it is the source of %d stripes", n)
	}
	for stripe := range peer.Stripes {
		child.says(peer.Subscribe{Stream: r.stream, Stripe: uint8(stripe), Slots: 1})
	}
	r.plays(2, time.Second)
	signed := r.packages(2, data)
	r.answer(3, signed, nil)
	r.answer(2, data, nil)
	r.w.run(time.Second)
	if told := of[peer.Part](child); len(told) != 1 || !bytes.Equal(told[0].Raw, signed) {
		t.Errorf("%d certificates are told", len(told))
	}
	if s := r.ledger.sum(); s.Uploaded["direct"] != int64(len(data)) {
		t.Errorf("%v were pushed on", s.Uploaded)
	}
	if f := r.verification.lists.figures; f.Parts != 2 || f.PartsMissed != 0 || f.Bytes == 0 {
		t.Errorf("%+v", f)
	}
}

// TestCertificatesThatDoNotCount have nothing shared, and the part is played.
func TestCertificatesThatDoNotCount(t *testing.T) {
	data := media(5)
	for name, c := range map[string]struct {
		answer func(r *partRig) []byte
		err    error
	}{
		"not there":       {func(*partRig) []byte { return nil }, errors.New("404")},
		"a page":          {func(*partRig) []byte { return []byte("<html>") }, nil},
		"too long":        {func(r *partRig) []byte { return append(r.packages(1, data), make([]byte, certificate.MaxSize)...) }, nil},
		"a seed's":        {func(r *partRig) []byte { return r.signs(1, data) }, nil},
		"of another part": {func(r *partRig) []byte { return r.packages(0, data) }, nil},
		"forged":          {func(r *partRig) []byte { raw := r.packages(1, data); raw[len(raw)-1] ^= 1; return raw }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r, child := packagedRig(t)
			o := r.plays(1, time.Second)
			r.answer(1, c.answer(r), c.err)
			r.answer(0, data, nil)
			r.w.run(time.Second)
			if f := r.verification.lists.figures; o.n != 1 || o.err != nil || child.sources() != 0 || f.Parts != 0 || f.PartsMissed != 1 {
				t.Errorf("%+v, the source of %d stripes, %+v", o, child.sources(), f)
			}
		})
	}
}

// TestAnOriginThatContradictsThePackagerIsNotPassedOn: it is played.
func TestAnOriginThatContradictsThePackagerIsNotPassedOn(t *testing.T) {
	r, child := packagedRig(t)
	data, other := media(5), media(5)
	other[7] ^= 1
	r.plays(1, time.Second)
	r.answer(1, r.packages(1, data), nil)
	for stripe := range peer.Stripes {
		child.says(peer.Subscribe{Stream: r.stream, Stripe: uint8(stripe), Slots: 1})
	}
	r.answer(0, other, nil)
	r.w.run(time.Second)
	turn, _ := parts.Turn(7, 1)
	if f := r.loads.streams.tracks[0]; !f.differs[turn] || r.ledger.sum().Uploaded["direct"] != int64(len(data)-segment.PieceSize) {
		t.Errorf("%v were pushed on, contradictions %v", r.ledger.sum().Uploaded, f.differs)
	}
}

// TestALoadOfACertificateIsGivenUp with its stream, and after a part's time. Without a key none is begun.
func TestALoadOfACertificateIsGivenUp(t *testing.T) {
	r, child := packagedRig(t)
	r.plays(1, time.Second)
	r.loads.streams.leave(0)
	if r.canceled == 0 {
		t.Error("it is not given up")
	}
	r.answer(1, r.packages(1, media(5)), nil)
	if f := r.verification.lists.figures; f.Parts != 0 || child.sources() != 0 {
		t.Errorf("what comes then counts: %+v", f)
	}
	r, _ = packagedRig(t)
	r.plays(1, time.Second)
	if r.w.run(2 * partDuration); r.canceled != 1 || r.verification.lists.figures.PartsMissed != 1 {
		t.Errorf("%d are given up, %+v", r.canceled, r.verification.lists.figures)
	}
	r, _ = packagedRig(t)
	r.verification.keys, _ = certificate.NewKeySet()
	if r.plays(1, time.Second); len(r.fetches) != 1 {
		t.Errorf("without a packager's key the origin was asked %+v", r.fetches)
	}
}
