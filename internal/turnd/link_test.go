package turnd

import (
	"sync"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// side is one end of a link.
type side struct {
	other *side
	open  chan struct{}
	data  chan string

	mu      sync.Mutex
	link    transfer.Link        // guarded by mu
	waiting []transfer.Candidate // guarded by mu: for a link that is not there yet
}

func newSide() *side { return &side{open: make(chan struct{}), data: make(chan string, 100)} }

func (s *side) Candidate(c transfer.Candidate) {
	s.other.mu.Lock()
	defer s.other.mu.Unlock()
	if s.other.link == nil {
		s.other.waiting = append(s.other.waiting, c)
		return
	}
	_ = s.other.link.AddCandidate(c)
}

func (s *side) attach(l transfer.Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link = l
	for _, c := range s.waiting {
		_ = l.AddCandidate(c)
	}
}

func (s *side) Open()                   { close(s.open) }
func (s *side) Control(b []byte)        { s.data <- string(b) }
func (s *side) Data([]byte)             {}
func (s *side) Drain()                  {}
func (s *side) Closed(peer.CloseReason) {}

// TestLinksThatMayOnlyBeRelayed come up through the relay, show no other address to each other, and say that they are relayed.
func TestLinksThatMayOnlyBeRelayed(t *testing.T) {
	for _, transport := range []string{"udp", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			w := newWorld(t, nil)
			host := func(holder string) *rtclink.Host {
				username, credential := w.secret.Mint("demo", holder, time.Now().Add(time.Minute))
				h, err := rtclink.Listen(rtclink.Config{
					Listen: "127.0.0.1:0", Loopback: true, RelayOnly: true,
					ICEServers: []rtclink.ICEServer{{URLs: []string{"turn:" + w.Addr().String() + "?transport=" + transport}, Username: username, Credential: credential}},
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = h.Close() })
				return h
			}
			offerer, answerer := host("a"), host("b")
			a, b := newSide(), newSide()
			a.other, b.other = b, a
			l, offer, err := offerer.Offer(a)
			if err != nil {
				t.Fatal(err)
			}
			m, answer, err := answerer.Answer(offer, b)
			if err != nil {
				t.Fatal(err)
			}
			b.attach(m)
			if err := l.Accept(answer); err != nil {
				t.Fatal(err)
			}
			a.attach(l)
			for _, s := range []*side{a, b} {
				select {
				case <-s.open:
				case <-time.After(2 * patience):
					t.Fatalf("no link; the relay has %d allocations", w.Allocations())
				}
				if p := s.link.Path(); p != transfer.Relay {
					t.Errorf("the path is %v", p)
				}
			}
			a.link.SendControl([]byte("hello"))
			select {
			case text := <-b.data:
				if text != "hello" {
					t.Errorf("%q arrived", text)
				}
			case <-time.After(patience):
				t.Error("nothing arrived")
			}
			if n := w.Allocations(); n != 2 {
				t.Errorf("%d allocations for two ends", n)
			}
		})
	}
}
