package rtclink

import (
	"runtime"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// quiet is the owner of a link that does nothing.
type quiet struct {
	link   transfer.Link
	peer   *quiet
	early  chan transfer.Candidate
	opened chan struct{}
}

func newQuiet() *quiet {
	return &quiet{early: make(chan transfer.Candidate, 32), opened: make(chan struct{})}
}

func (q *quiet) Candidate(c transfer.Candidate) { q.peer.early <- c }
func (q *quiet) Open()                          { close(q.opened) }
func (q *quiet) Control([]byte)                 {}
func (q *quiet) Data([]byte)                    {}
func (q *quiet) Drain()                         {}
func (q *quiet) Closed(peer.CloseReason)        {}

func connectQuiet(t testing.TB, offerer, answerer *Host) {
	t.Helper()
	a, b := newQuiet(), newQuiet()
	a.peer, b.peer = b, a
	l, offer, err := offerer.Offer(a)
	if err != nil {
		t.Fatal(err)
	}
	var answer transfer.Description
	if b.link, answer, err = answerer.Answer(offer, b); err != nil {
		t.Fatal(err)
	}
	if err := l.Accept(answer); err != nil {
		t.Fatal(err)
	}
	a.link = l
	late := time.After(patience)
	for open := 0; open < 2; {
		select {
		case c := <-a.early:
			_ = a.link.AddCandidate(c)
		case c := <-b.early:
			_ = b.link.AddCandidate(c)
		case <-a.opened:
			a.opened = nil
			open++
		case <-b.opened:
			b.opened = nil
			open++
		case <-late:
			t.Fatal("the link did not open")
		}
	}
}

// TestIdleLinksAreCheap is the short form of `leeway-lab bench idle`: both sides in one process. The bound on memory is of
// what the heap and the stacks hold, which does not depend on the system, twice what was measured.
func TestIdleLinksAreCheap(t *testing.T) {
	leakCheck(t)
	seed, viewer := listen(t, nil), listen(t, func(c *Config) { c.SocketPerLink = true })
	connectQuiet(t, viewer, seed) // what a first link brings to a process is not the cost of a link
	goroutines, bytes := cost()
	const links = 20
	for range links {
		connectQuiet(t, viewer, seed)
	}
	for _, h := range []*Host{seed, viewer} {
		for l := range h.links {
			settled(t, l)
		}
	}
	more, held := cost()
	if per := float64(more-goroutines) / (2 * links); per > 6 {
		t.Errorf("%.1f goroutines a link and side", per)
	}
	if per := (held - bytes) / (2 * links); per > 200_000 && !testkit.RaceDetector {
		t.Errorf("%d bytes of heap and stacks a link and side", per)
	}
}

// cost is what the process holds, garbage aside; a stack shrinks by half in each collection.
func cost() (goroutines int, bytes int64) {
	for range 5 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), int64(m.HeapInuse + m.StackInuse)
}
