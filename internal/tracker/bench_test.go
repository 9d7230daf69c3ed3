package tracker

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/natsbus"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// BenchmarkJoin measures one join of a swarm of a thousand with eight introductions, from the session's message to what is
// queued for its socket, over a real bus. The baseline in the same run is one request over the same bus that is answered
// with as many bytes: what remains is the tracker's own work. "ratio" is join over baseline.
func BenchmarkJoin(b *testing.B) {
	link, err := natsbus.Open(natsbus.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer link.Close()
	t, err := New(Config{Secret: bytes.Repeat([]byte("s"), 32), Sites: oneSite(b, configured.Config{})}, link)
	if err != nil {
		b.Fatal(err)
	}
	defer t.Close()
	stop, err := link.Subscribe("bench.echo", func(_ string, data []byte, reply func([]byte) error) { _ = reply(data) })
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	request := bus.HomeRequest{
		Op: bus.OpJoin, Tracker: t.id, Swarm: t.swarmID("demo", testTitle), Site: "demo", Title: testTitle, Manifest: testManifest,
		Role: "full", Want: 8, Range: &signal.Range{From: 0, To: 30_000},
	}
	for range 1000 {
		request.Session = newID()
		t.home.handle(&request)
	}
	var join, baseline time.Duration
	for b.Loop() {
		s := t.newSession(&Socket{Conn: sink{}}, Visitor{})
		s.id, s.site = newID(), t.cfg.Sites[0]
		began := time.Now()
		s.join(&signal.Join{Title: testTitle, Manifest: testManifest, Role: "full", Want: 8, Range: request.Range})
		join += time.Since(began)
		t.home.handle(&bus.HomeRequest{Op: bus.OpLeave, Tracker: t.id, Session: s.id, Swarm: request.Swarm})
		began = time.Now()
		if _, err := link.Request(context.Background(), "bench.echo", make([]byte, 1024)); err != nil {
			b.Fatal(err)
		}
		baseline += time.Since(began)
	}
	b.ReportMetric(float64(join.Nanoseconds())/float64(b.N), "ns/join")
	b.ReportMetric(float64(baseline.Nanoseconds())/float64(b.N), "ns/baseline")
	b.ReportMetric(float64(join)/float64(baseline), "ratio")
}

// sink is a socket whose other side reads at once.
type sink struct{}

func (sink) Write([]byte) error { return nil }
func (sink) Close(int, string)  {}
