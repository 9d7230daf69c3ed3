package viewer

import (
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func packagerVerifyKey() signal.VerifyKey {
	point, err := packagerKey().PublicKey.Bytes()
	if err != nil {
		panic(err)
	}
	id := certificate.KeyIDOf(&packagerKey().PublicKey)
	return signal.VerifyKey{KeyID: id[:], Alg: int(certificate.Packager), Key: point}
}

// short is what a packager signs of data under a name.
func short(issued time.Time, life time.Duration, name segment.Name, data []byte) []byte {
	raw, err := certificate.Issue(nil, packagerKey(), certificate.Certificate{
		Alg: certificate.Packager, IssuedAt: issued, NotAfter: issued.Add(life), ObjectLength: int64(len(data)), Length: int64(len(data)),
		Site: "test", Name: name, Digests: certificate.DigestPieces(data),
	})
	if err != nil {
		panic(err)
	}
	c, err := certificate.Parse(raw)
	if err != nil {
		panic(err)
	}
	s, err := c.Short()
	if err != nil {
		panic(err)
	}
	return s
}

func listOf(entries ...[]byte) []byte {
	b, err := certificate.EncodeList(entries)
	if err != nil {
		panic(err)
	}
	return b
}

// certify writes a list beside each media playlist, as `leeway certify` does.
func (f *film) certify(issued time.Time) {
	for p := range f.files {
		if folder, isMedia := strings.CutSuffix(p, "index.m3u8"); isMedia {
			var entries [][]byte
			for q, data := range f.files {
				if strings.HasPrefix(q, folder) && strings.HasSuffix(q, ".ts") {
					entries = append(entries, short(issued, 30*24*time.Hour, segment.WholeName(q), data))
				}
			}
			f.files[p+certificate.ListSuffix] = listOf(entries...)
		}
	}
}

// certified is a scene whose film was signed at packaging an hour ago, with a seed or without.
func certified(t *testing.T, n int, seeded bool) *scene {
	s := newScene(t, fourSeconds(n, 750_000))
	s.film.certify(worldBegin.Add(-time.Hour))
	s.tracker.keys = append(s.tracker.keys, packagerVerifyKey())
	if !seeded {
		s.tracker.seed, s.tracker.keys = nil, []signal.VerifyKey{packagerVerifyKey()}
	}
	return s
}

// perSegment is how often the origin was asked for a segment, on average.
func (f *film) perSegment() float64 {
	asked := 0
	for _, n := range f.sent {
		asked += n
	}
	return float64(asked) / float64(len(f.sent))
}

// TestViewersShareWithoutAnySeed: of a film that was signed at packaging viewers make certificates themselves.
func TestViewersShareWithoutAnySeed(t *testing.T) {
	s := certified(t, 20, false)
	for range 4 {
		s.viewer(fast, nil)
		s.w.run(5 * time.Second)
	}
	s.w.run(100 * time.Second)
	s.check()
	// Each that comes later asks for two segments before its links are there.
	if n := s.film.perSegment(); n > 1.15 {
		t.Errorf("the origin was asked %.2f times for a segment", n)
	}
	for i, a := range s.viewers {
		sum := a.now()
		if sum.Lists.Loaded != 1 || sum.Lists.Failed != 0 || sum.Stats.Stalls > 0 || sum.Stats.Contradictions > 0 {
			t.Errorf("viewer %d: %+v, %d stalls, %d contradictions", i, sum.Lists, sum.Stats.Stalls, sum.Stats.Contradictions)
		}
		if i == 0 && sum.Lists.Completed != 20 {
			t.Errorf("the first viewer has completed %d certificates of 20", sum.Lists.Completed)
		}
		if i > 0 && sum.Offload < 0.9 {
			t.Errorf("viewer %d: %.2f from viewers", i, sum.Offload)
		}
	}
	// Without lists there is nothing to share: the same scene, and the check of the test itself.
	bare := newScene(t, fourSeconds(20, 750_000))
	bare.tracker.seed = nil
	for range 4 {
		bare.viewer(fast, nil)
		bare.w.run(5 * time.Second)
	}
	bare.w.run(100 * time.Second)
	if n := bare.film.perSegment(); n != 4 {
		t.Errorf("without certificates the origin was asked %.2f times for a segment, of four viewers", n)
	}
}

// TestASeedIsNotAskedForWhatAListHas: it fetches and sends nothing.
func TestASeedIsNotAskedForWhatAListHas(t *testing.T) {
	s := certified(t, 20, true)
	for range 3 {
		s.viewer(fast, nil)
		s.w.run(5 * time.Second)
	}
	s.w.run(100 * time.Second)
	s.check()
	if len(s.seed.certs) > 0 || s.seed.sent > 0 {
		t.Errorf("the seed has certified %d segments and sent %d bytes", len(s.seed.certs), s.seed.sent)
	}
	if n := s.film.perSegment(); n > 1.15 {
		t.Errorf("the origin was asked %.2f times for a segment", n)
	}
}

// TestASeedServesWhereTheOriginFails, although a list has the certificate.
func TestASeedServesWhereTheOriginFails(t *testing.T) {
	s := certified(t, 20, true)
	for name := range s.film.files {
		if strings.HasSuffix(name, ".ts") {
			id := segment.NewID("test", segment.WholeName(name))
			s.seed.held[id], s.seed.certs[id] = s.film.files[name], issue(s.w, segment.WholeName(name), s.film.files[name])
		}
	}
	s.viewer(fast, nil)
	s.w.run(3 * time.Second)
	s.film.outage = true
	s.w.run(100 * time.Second)
	s.check()
	if s.seed.sent == 0 {
		t.Error("the seed has sent nothing")
	}
}
