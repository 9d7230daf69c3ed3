package idlebench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/bench"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// side is one process: an offerer with a socket a link, as a viewer has, or an answerer with one socket, as a seed has.
type side struct {
	offers bool
	host   *rtclink.Host
	say    func(message)
	stop   context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	links map[int]*link // guarded by mu
}

// message is what the sides and the parent tell each other.
type message struct {
	Type        string                `json:"type"` // begin, signal, ready, usage
	Link        int                   `json:"link,omitempty"`
	Description *transfer.Description `json:"description,omitempty"`
	Candidate   *transfer.Candidate   `json:"candidate,omitempty"`
	Usage       *usage                `json:"usage,omitempty"`
}

// usage is what a side costs at one moment.
type usage struct {
	RSS        int64           `json:"rss"` // bytes
	Goroutines int             `json:"goroutines"`
	Traffic    rtclink.Traffic `json:"traffic"`
}

func newSide(offers bool, say func(message)) (*side, error) {
	host, err := rtclink.Listen(rtclink.Config{Listen: "127.0.0.1:0", SocketPerLink: offers})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &side{offers: offers, host: host, say: say, stop: cancel, links: map[int]*link{}}
	s.wg.Go(func() { s.tick(ctx) })
	return s, nil
}

// tick keeps the sessions alive as their owners do: one goroutine for all of them.
func (s *side) tick(ctx context.Context) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		s.mu.Lock()
		for _, l := range s.links {
			if l.session != nil {
				l.session.Tick()
			}
		}
		s.mu.Unlock()
	}
}

// begin makes an offer.
func (s *side) begin(id int) error {
	l := &link{side: s, id: id, held: true}
	offered, offer, err := s.host.Offer(l)
	if err != nil {
		return err
	}
	l.offered = offered
	s.add(l, offered)
	s.say(message{Type: "signal", Link: id, Description: &offer})
	l.release()
	return nil
}

func (s *side) add(l *link, t transfer.Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.transport = t
	hello := peer.Hello{MinVersion: 1, MaxVersion: peer.Version, MaxRequests: 1}
	l.session = transfer.NewSession(t, hello, peer.ID{}, l, time.Now)
	s.links[l.id] = l
}

// handle takes a signal of the other side.
func (s *side) handle(m message) error {
	s.mu.Lock()
	l := s.links[m.Link]
	s.mu.Unlock()
	switch {
	case m.Description == nil && l != nil:
		_ = l.transport.AddCandidate(*m.Candidate)
		return nil
	case m.Description == nil:
		return fmt.Errorf("link %d: a candidate before the offer", m.Link)
	case l != nil:
		return l.offered.Accept(*m.Description)
	}
	l = &link{side: s, id: m.Link, held: true}
	t, answer, err := s.host.Answer(*m.Description, l)
	if err != nil {
		return err
	}
	s.add(l, t)
	s.say(message{Type: "signal", Link: m.Link, Description: &answer})
	l.release()
	return nil
}

// shrinkings is how many collections a goroutine's stack needs to shrink to what it uses: each halves it. An idle
// process makes one every two minutes.
const shrinkings = 5

// usage returns what the process costs now, garbage aside.
func (s *side) usage() usage {
	for range shrinkings {
		debug.FreeOSMemory()
	}
	resident, _ := bench.Resident(os.Getpid()) // 0 where the system does not tell
	return usage{RSS: resident, Goroutines: runtime.NumGoroutine(), Traffic: s.host.Traffic()}
}

func (s *side) close() error {
	s.stop()
	s.wg.Wait()
	return s.host.Close()
}

// link is one end of a link that does nothing.
type link struct {
	side    *side
	id      int
	offered *rtclink.Link

	transport transfer.Link     // guarded by side.mu until it is added
	session   *transfer.Session // guarded by side.mu until it is added

	mu      sync.Mutex
	held    bool                 // guarded by mu: the description is not out yet
	waiting []transfer.Candidate // guarded by mu
}

func (l *link) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
	for _, c := range l.waiting {
		l.side.say(message{Type: "signal", Link: l.id, Candidate: &c})
	}
	l.waiting = nil
}

// Candidate implements transfer.LinkEvents.
func (l *link) Candidate(c transfer.Candidate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		l.waiting = append(l.waiting, c)
		return
	}
	l.side.say(message{Type: "signal", Link: l.id, Candidate: &c})
}

// Open implements transfer.LinkEvents.
func (l *link) Open() {
	l.side.mu.Lock()
	session := l.session
	l.side.mu.Unlock()
	session.Open()
}

// Control implements transfer.LinkEvents.
func (l *link) Control(b []byte) { l.session.Control(b) }

// Data implements transfer.LinkEvents.
func (l *link) Data(b []byte) { l.session.Data(b) }

// Drain implements transfer.LinkEvents.
func (l *link) Drain() {}

// Closed implements transfer.LinkEvents.
func (l *link) Closed(reason peer.CloseReason) {
	l.side.say(message{Type: "closed", Link: l.id})
}

// Ready implements transfer.Handler.
func (l *link) Ready(peer.Hello) error {
	l.side.say(message{Type: "ready", Link: l.id})
	return nil
}

// Message implements transfer.Handler.
func (l *link) Message(peer.Message) error { return nil }

// Piece implements transfer.Handler.
func (l *link) Piece(peer.Data) error { return nil }

// role makes the process of one side.
func role(offers bool) bench.Role {
	return func(_ context.Context, in *json.Decoder, out *bench.Writer) error {
		s, err := newSide(offers, func(m message) { _ = out.Write(m) })
		if err != nil {
			return err
		}
		for err == nil {
			var m message
			if err = in.Decode(&m); err != nil {
				break
			}
			switch m.Type {
			case "begin":
				err = s.begin(m.Link)
			case "signal":
				err = s.handle(m)
			case "usage":
				u := s.usage()
				err = out.Write(message{Type: "usage", Usage: &u})
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return errors.Join(err, s.close())
	}
}
