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

// TestLinksThatMayOnlyBeRelayed come up through the relay, show no other address to each other, and say that they are relayed,
// on the side that has no relay of its own too.
func TestLinksThatMayOnlyBeRelayed(t *testing.T) {
	for _, c := range []struct {
		name, transport string
		both            bool // sides have a relay
	}{{"udp", "udp", true}, {"tcp", "tcp", true}, {"to a side without, udp", "udp", false}, {"to a side without, tcp", "tcp", false}} {
		transport := c.transport
		t.Run(c.name, func(t *testing.T) {
			change := allowLoopback // here the other side is on the relay's own machine
			if c.both {
				change = nil
			}
			w := newWorld(t, change)
			host := func(holder string) *rtclink.Host {
				if holder == "b" && !c.both {
					h, err := rtclink.Listen(rtclink.Config{Listen: "127.0.0.1:0", Loopback: true})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = h.Close() })
					return h
				}
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
			if n := w.Allocations(); n != map[bool]int{true: 2, false: 1}[c.both] {
				t.Errorf("%d allocations", n)
			}
		})
	}
}
