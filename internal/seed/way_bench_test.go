package seed_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/seed"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/sibling"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const benchBytes = 256 << 10

// benchOrigin is an origin in memory: a playlist, and the same bytes for each of its segments. No viewer links to its seed.
type benchOrigin struct{ list, data []byte }

func (o benchOrigin) Get(_ context.Context, f seed.Fetch) (*seed.Fetched, error) {
	data := o.data
	if f.Path == "/film/index.m3u8" {
		data = o.list
	}
	return &seed.Fetched{Data: data, ObjectLength: int64(len(data)), Path: f.Path}, nil
}

// Flow implements seed.Origin.
func (benchOrigin) Flow(context.Context, seed.Fetch, func([]byte) error) (*seed.Fetched, error) {
	panic("nothing flows")
}

func (benchOrigin) Answer(transfer.Description, transfer.LinkEvents) (transfer.Link, transfer.Description, error) {
	return nil, transfer.Description{}, errors.New("no viewers here")
}

// benchSeed is a seed that serves a film of so many segments, and a function that asks it for the n-th.
func benchSeed(b *testing.B, segments int) func(n int) {
	o := benchOrigin{data: noise(benchBytes)}
	list := "#EXTM3U\n#EXT-X-TARGETDURATION:4\n"
	for n := range segments {
		list += fmt.Sprintf("#EXTINF:4,\n%d.m4s\n", n)
	}
	o.list = []byte(list + "#EXT-X-ENDLIST\n")
	rules, err := site.New(site.Config{Name: "demo", Hosts: []string{"video.example.com"}, FetchBase: "https://origin.example.com"})
	if err != nil {
		b.Fatal(err)
	}
	on := &memoryBus{}
	s, err := seed.New(seed.Config{DataDir: b.TempDir(), Sites: []seed.Site{{Site: rules, Origin: o}}, LookAhead: 1}, on, o)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error)
	listens := make(chan struct{}, 1024)
	undo, _ := on.Subscribe(bus.SubjectSeedBeat, func(string, []byte, func([]byte) error) { listens <- struct{}{} })
	go func() { ended <- s.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		<-ended
		undo()
	})
	<-listens
	title, _ := bus.Encode(&bus.SeedDelivery{Kind: bus.KindTitle, Title: &bus.Title{Site: "demo", Title: "/film", Manifest: "/film/index.m3u8", Swarm: signal.ID{2}, Viewers: 9}})
	on.send(bus.SubjectSeedDeliver(s.ID()), title).Wait()
	return func(n int) {
		q := sibling.Question{Segment: segment.NewID("demo", segment.WholeName(fmt.Sprintf("/film/%d.m4s", n))), Swarm: signal.ID{2}}
		if s.Answer(b.Context(), q).Certificate == nil {
			b.Fatalf("segment %d has no certificate", n)
		}
	}
}

// BenchmarkHeldSegment answers a question for a segment that is in memory; beside it a lookup in a map.
func BenchmarkHeldSegment(b *testing.B) {
	ask := benchSeed(b, 1)
	ask(0)
	began := time.Now()
	for b.Loop() {
		ask(0)
	}
	each := time.Since(began) / time.Duration(b.N)
	id, known := segment.ID{1}, map[segment.ID]int{{1}: 1}
	began = time.Now()
	for range b.N {
		known[id]++
	}
	b.ReportMetric(float64(each)/max(1, float64(time.Since(began))/float64(b.N)), "lookups")
}

// BenchmarkFetchedSegment has a segment fetched, certified and stored; beside it digests and signature alone.
func BenchmarkFetchedSegment(b *testing.B) {
	const segments = 4000
	ask := benchSeed(b, segments)
	ask(segments - 1) // the playlist is there
	n, began := 0, time.Now()
	for b.Loop() {
		ask(n % segments)
		n++
	}
	each := time.Since(began) / time.Duration(n)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	data := noise(benchBytes)
	began = time.Now()
	for range 100 {
		c := certificate.Certificate{
			IssuedAt: time.Now(), NotAfter: time.Now().Add(time.Hour), ObjectLength: benchBytes, Length: benchBytes,
			Site: "demo", Name: "/film/0.m4s", Digests: certificate.DigestPieces(data),
		}
		if _, err := certificate.Issue(rand.Reader, key, c); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(each)/(float64(time.Since(began))/100), "signatures")
}
