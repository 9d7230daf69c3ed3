package viewer

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// chunkPackager signs the chunks of a stream, and its segments when they are complete; or its parts.
type chunkPackager struct {
	c     *chunkStream
	mute  bool                      // it signs none
	late  func(n int) time.Duration // behind a chunk
	asked map[string]int            // requests for certificates, by node
}

// packaged has the chunks of a scene signed by a packager whose key viewers know.
func (c *chunkStream) packaged() *chunkPackager {
	c.packager = &chunkPackager{c: c, late: func(int) time.Duration { return 0 }, asked: map[string]int{}}
	c.s.tracker.keys = append(c.s.tracker.keys, packagerVerifyKey())
	return c.packager
}

// unseeded leaves a scene without its seed.
func (s *scene) unseeded() {
	s.tracker.seed, s.tracker.keys = nil, []signal.VerifyKey{packagerVerifyKey()}
}

// loads is how often certificates were asked for.
func (p *chunkPackager) loads() (n int) {
	for _, asked := range p.asked {
		n += asked
	}
	return n
}

// get answers a request for a certificate.
func (p *chunkPackager) get(o origin, f Fetch, progress func(int64), done func(Fetched, error)) (cancel func()) {
	w, over := o.node.w, false
	end := func(got Fetched, err error) {
		if !over {
			over = true
			done(got, err)
		}
	}
	w.After(3*o.film.node.away(o.node), func() {
		p.asked[o.node.name]++
		raw := p.signed(strings.TrimSuffix(path(f.URL), certificate.ListSuffix))
		if raw == nil || int64(len(raw)) > f.MaxBytes {
			end(Fetched{}, errors.New("404 Not Found, or longer than the viewer takes"))
			return
		}
		o.transfer(raw, func() bool { return over }, progress, func(took time.Duration) { end(Fetched{Data: raw, URL: f.URL, Transfer: took}, nil) })
	})
	return func() { end(Fetched{}, errors.New("canceled")) }
}

// signed is the certificate of a chunk, of a segment or of a part, that is there by now.
func (p *chunkPackager) signed(of string) []byte {
	var r, seq, part, first, last int
	c := p.c
	if n, _ := fmt.Sscanf(of, "/media/film/%d/part-%d.%d.ts", &r, &seq, &part); n == 3 {
		data := c.s.film.files[of]
		return p.sign(c.made(seq, part).Add(p.late(part)), segment.WholeName(of), data, int64(len(data)))
	}
	n, _ := fmt.Sscanf(of, "/media/film/%d/seg-%d.ts.%d-%d", &r, &seq, &first, &last)
	data := c.s.film.files[segmentFile(r, seq)]
	name, chunk := segment.WholeName(segmentFile(r, seq)), c.each-1
	if n == 4 {
		for chunk = 0; chunk < c.each && (c.begins(data, chunk) != first || c.begins(data, chunk+1) != last+1); chunk++ {
		}
		name = segment.RangeName(segmentFile(r, seq), int64(first), int64(last))
	}
	if data == nil || n != 2 && n != 4 || chunk == c.each {
		return nil
	}
	object := int64(len(data))
	if n == 4 {
		data, object = data[first:last+1], int64(last+1)
	}
	return p.sign(c.made(seq, chunk).Add(p.late(chunk)), name, data, object)
}

// sign signs what is made at a moment, the end of so much of its object; nil: it is not there yet.
func (p *chunkPackager) sign(at time.Time, name segment.Name, data []byte, object int64) []byte {
	if p.mute || at.After(p.c.s.w.now) {
		return nil
	}
	raw, err := certificate.Issue(nil, packagerKey(), certificate.Certificate{
		Alg: certificate.Packager, IssuedAt: at, NotAfter: at.Add(certificate.PartLife), ObjectLength: object, Length: int64(len(data)),
		Site: "test", Name: name, Digests: certificate.DigestPieces(data),
	})
	if err != nil {
		panic(err)
	}
	return raw
}

func newPackagedChunks(t testing.TB) (*scene, *chunkStream, *chunkPackager) {
	s, c := newChunkScene(t, 4)
	p := c.packaged()
	s.unseeded()
	return s, c, p
}

// TestLongSegmentsAreSharedWithoutASeed: the certificate of the end of 4.2 MB has more than 8,192 bytes.
func TestLongSegmentsAreSharedWithoutASeed(t *testing.T) {
	s, c := newChunkScene(t, 4, 4_200_000)
	c.packaged()
	s.unseeded()
	c.audience(3, 25*time.Second)
	s.w.run(30 * time.Second)
	s.check()
	if got := s.share(FromPeer, 6); got < 0.5 { // two in three, at most
		t.Errorf("%.2f is of viewers", got)
	}
	for i, a := range s.viewers {
		if sum := a.now(); sum.Stats.Stalls > 0 || sum.Lists.PartsMissed > 0 {
			t.Errorf("viewer %d: %d stalls, %d certificates are missed", i, sum.Stats.Stalls, sum.Lists.PartsMissed)
		}
	}
}

// TestViewersShareChunksWithoutASeed, by a source that loads their certificates.
func TestViewersShareChunksWithoutASeed(t *testing.T) {
	s, c, p := newPackagedChunks(t)
	c.audience(6, 50*time.Second)
	before := p.loads()
	s.w.run(50 * time.Second)
	s.fine()
	if got := s.share(FromPeer, 10); got < 0.7 { // five in six, at most
		t.Errorf("%.2f is of viewers", got)
	}
	if n := p.loads() - before; n > 190 { // of 25 segments of four chunks and an end
		t.Errorf("%d certificates were asked for", n)
	}
	for i, a := range s.viewers {
		if sum := a.now(); sum.Stats.Bytes["seed"] > 0 {
			t.Errorf("viewer %d has bytes of a seed", i)
		}
	}
}

// TestAPackagerThatIsLateHasItsChunksShared, though it is late with every third.
func TestAPackagerThatIsLateHasItsChunksShared(t *testing.T) {
	s, c, p := newPackagedChunks(t)
	p.late = func(n int) time.Duration {
		if n%3 == 0 {
			return 150 * time.Millisecond
		}
		return 0
	}
	c.audience(6, 45*time.Second)
	s.w.run(45 * time.Second)
	s.fine()
	if got := s.share(FromPeer, 6); got < 0.7 {
		t.Errorf("%.2f is of viewers", got)
	}
}

// TestViewersOfChunksGoOnWhenTheirSourceLeaves without a word.
func TestViewersOfChunksGoOnWhenTheirSourceLeaves(t *testing.T) {
	s, c, _ := newPackagedChunks(t)
	c.audience(6, 60*time.Second)
	s.w.run(20 * time.Second)
	var source *actor
	var left []*actor
	for _, a := range s.viewers {
		if last := a.results[len(a.results)-1]; source == nil && last.Source == FromOrigin {
			source = a
			continue
		}
		left = append(left, a)
	}
	if source == nil {
		t.Fatal("there is no source")
	}
	before := 0
	for _, a := range left {
		before = max(before, len(a.results))
	}
	source.dies()
	s.viewers = left
	s.w.run(45 * time.Second)
	s.fine()
	if got := s.share(FromPeer, before); got < 0.5 {
		t.Errorf("%.2f is of viewers", got)
	}
}

// TestViewersOfChunksGoOnWhenTheSeedDies, and load nothing while it lives.
func TestViewersOfChunksGoOnWhenTheSeedDies(t *testing.T) {
	s, c := newChunkScene(t, 4)
	p := c.packaged()
	c.audience(6, 65*time.Second)
	s.w.run(5 * time.Second)
	before := p.loads()
	s.w.run(10 * time.Second)
	if n := p.loads() - before; n > 4 {
		t.Errorf("%d certificates were loaded beside the seed's", n)
	}
	s.seed.node.net++
	s.w.run(50 * time.Second)
	s.fine()
	if got := s.share(FromPeer, 14); got < 0.5 {
		t.Errorf("%.2f is of viewers", got)
	}
}

// TestAPackagerWithoutCertificatesOfChunksCostsFewRequests.
func TestAPackagerWithoutCertificatesOfChunksCostsFewRequests(t *testing.T) {
	s, c, p := newPackagedChunks(t)
	p.mute = true
	c.audience(4, 60*time.Second)
	s.w.run(60 * time.Second)
	s.fine()
	// Four chunks in a row, then one after 4, 8, 16 and 32 s; three times each, and what was begun then.
	for name, n := range p.asked {
		if n > 36 {
			t.Errorf("%s has asked for %d certificates", name, n)
		}
	}
	if len(p.asked) == 0 {
		t.Error("none was asked for")
	}
}

// TestViewersWithoutThePackagersKeyLoadNone.
func TestViewersWithoutThePackagersKeyLoadNone(t *testing.T) {
	s, c, p := newPackagedChunks(t)
	s.tracker.keys = nil
	c.audience(3, 20*time.Second)
	s.w.run(20 * time.Second)
	s.fine()
	if p.loads() > 0 {
		t.Errorf("%d certificates were loaded", p.loads())
	}
}

// TestAnAudienceOfPackagedChunksServesItself: twelve viewers of mixed lines, two minutes, in virtual time, without a seed, beside the same ones
// without peers.
func TestAnAudienceOfPackagedChunksServesItself(t *testing.T) {
	testkit.InOneGoroutine(t)
	c := crowd{viewers: 12, segment: 2 * time.Second, chunks: 4, window: 12, length: 2 * time.Minute, within: 30 * time.Second, seed: 1, thin: 2, signed: true}
	_, with := c.play(t)
	c.alone = true
	_, alone := c.play(t)
	t.Logf("with peers %+v, without %+v", with, alone)
	if with.offload < 0.4 || with.lag > alone.lag+0.1 || with.stall > alone.stall+0.001 || with.bitrate < alone.bitrate || with.leaps > 0 {
		t.Errorf("with peers %+v, without %+v", with, alone)
	}
}
