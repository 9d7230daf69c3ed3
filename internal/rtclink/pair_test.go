package rtclink

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

const patience = 20 * time.Second

// end is one side of a link under test.
type end struct {
	link    transfer.Link
	peer    *end
	rewrite func(candidate string) (string, bool)

	opened  chan struct{}
	closed  chan peer.CloseReason
	drained chan struct{}
	control chan []byte
	reads   func() // called before a control message is read; nil: nothing

	mu      sync.Mutex
	waiting []transfer.Candidate
	data    func([]byte)
}

func newEnd() *end {
	return &end{
		opened: make(chan struct{}), closed: make(chan peer.CloseReason, 1),
		drained: make(chan struct{}, 1), control: make(chan []byte, 4096), data: func([]byte) {},
	}
}

func (e *end) Candidate(c transfer.Candidate) {
	if e.rewrite != nil && !c.End {
		var keep bool
		if c.Candidate, keep = e.rewrite(c.Candidate); !keep {
			return
		}
	}
	e.peer.mu.Lock()
	defer e.peer.mu.Unlock()
	if e.peer.link == nil {
		e.peer.waiting = append(e.peer.waiting, c)
		return
	}
	_ = e.peer.link.AddCandidate(c)
}

// rewritten is a description whose candidates are rewritten as those that follow it.
func (e *end) rewritten(sdp string) string {
	if e.rewrite == nil {
		return sdp
	}
	var b strings.Builder
	for line := range strings.Lines(sdp) {
		if c, ok := strings.CutPrefix(line, "a=candidate:"); ok {
			c, keep := e.rewrite("candidate:" + strings.TrimRight(c, "\r\n"))
			if !keep {
				continue
			}
			line = "a=" + c + "\r\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

func (e *end) attach(l transfer.Link) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.link = l
	for _, c := range e.waiting {
		_ = l.AddCandidate(c)
	}
}

func (e *end) Open() { close(e.opened) }
func (e *end) Control(b []byte) {
	if e.reads != nil {
		e.reads()
		return
	}
	e.control <- append([]byte(nil), b...)
}
func (e *end) Closed(r peer.CloseReason) { e.closed <- r }
func (e *end) Data(b []byte)             { e.data(b) }
func (e *end) Drain() {
	select {
	case e.drained <- struct{}{}:
	default:
	}
}

func listen(t *testing.T, change func(*Config)) *Host {
	t.Helper()
	cfg := Config{Listen: "127.0.0.1:0"}
	if change != nil {
		change(&cfg)
	}
	h, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// connect links offerer and answerer; offering and answering may be prepared by the caller.
func connect(t testing.TB, offerer, answerer *Host, offering, answering *end) {
	t.Helper()
	offering.peer, answering.peer = answering, offering
	l, offer, err := offerer.Offer(offering)
	if err != nil {
		t.Fatal(err)
	}
	offer.SDP = offering.rewritten(offer.SDP)
	a, answer, err := answerer.Answer(offer, answering)
	if err != nil {
		t.Fatal(err)
	}
	answer.SDP = answering.rewritten(answer.SDP)
	answering.attach(a)
	if err := l.Accept(answer); err != nil {
		t.Fatal(err)
	}
	offering.attach(l)
	wait(t, offering.opened, "offerer to open")
	wait(t, answering.opened, "answerer to open")
}

func wait[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited %s for %s", patience, what)
		panic("unreachable")
	}
}

// lossyPath is a UDP path between one client and a server that loses some packets of the client.
type lossyPath struct {
	front, back *net.UDPConn
	wg          sync.WaitGroup
}

// everyLarge loses every n-th large packet.
func everyLarge(n int) func([]byte) bool {
	large := 0
	return func(b []byte) bool {
		if len(b) > 1000 {
			large++
		}
		return len(b) > 1000 && large%n == 0
	}
}

func newLossyPath(t *testing.T, server net.Addr, lose func([]byte) bool) *lossyPath {
	t.Helper()
	front, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	back, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	p := &lossyPath{front: front, back: back}
	var mu sync.Mutex
	var client net.Addr
	p.wg.Add(2)
	go func() {
		defer p.wg.Done()
		buf := make([]byte, 2048)
		for {
			k, from, err := front.ReadFrom(buf)
			if err != nil {
				return
			}
			mu.Lock()
			client = from
			mu.Unlock()
			if lose(buf[:k]) {
				continue
			}
			_, _ = back.WriteTo(buf[:k], server)
		}
	}()
	go func() {
		defer p.wg.Done()
		buf := make([]byte, 2048)
		for {
			k, err := back.Read(buf)
			if err != nil {
				return
			}
			mu.Lock()
			to := client
			mu.Unlock()
			if to != nil {
				_, _ = front.WriteTo(buf[:k], to)
			}
		}
	}()
	return p
}

func (p *lossyPath) close() {
	_ = p.front.Close()
	_ = p.back.Close()
	p.wg.Wait()
}

// through makes a candidate of the server one of the path.
func (p *lossyPath) through(candidate string) (string, bool) {
	f := strings.Fields(candidate)
	if len(f) < 6 {
		return "", false
	}
	f[5] = strconv.Itoa(p.front.LocalAddr().(*net.UDPAddr).Port)
	return strings.Join(f, " "), true
}
