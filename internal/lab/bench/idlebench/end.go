package idlebench

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/pairing"
	"github.com/leeway-video/leeway/internal/lab/proc"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// side is one process: an offerer with a socket a link, as a viewer has, or an answerer with one socket, as a seed has.
type side struct {
	host  *rtclink.Host
	links *pairing.Links[*link]
	say   func(message)
	stop  context.CancelFunc
	wg    sync.WaitGroup
}

// message is what the sides and the parent tell each other.
type message struct {
	Type   string          `json:"type"` // begin, signal, ready, usage
	Link   int             `json:"link,omitempty"`
	Signal *pairing.Signal `json:"signal,omitempty"`
	Usage  *usage          `json:"usage,omitempty"`
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
	s := &side{host: host, say: say, stop: cancel}
	s.links = pairing.New(host, func(n int, m pairing.Signal) { say(message{Type: "signal", Link: n, Signal: &m}) }, func() *link { return &link{side: s} })
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
		for l := range s.links.All() {
			l.session.Tick()
		}
	}
}

// shrinkings is how many collections a goroutine's stack needs to shrink to what it uses: each halves it. An idle
// process makes one every two minutes.
const shrinkings = 5

// usage returns what the process costs now, garbage aside.
func (s *side) usage() usage {
	for range shrinkings {
		debug.FreeOSMemory()
	}
	resident, _ := proc.Resident(os.Getpid()) // 0 where the system does not tell
	return usage{RSS: resident, Goroutines: runtime.NumGoroutine(), Traffic: s.host.Traffic()}
}

func (s *side) close() error {
	s.stop()
	s.wg.Wait()
	return s.host.Close()
}

// link is one end of a link that does nothing.
type link struct {
	pairing.Base
	side    *side
	session *transfer.Session
}

// Made implements pairing.End.
func (l *link) Made() {
	hello := peer.Hello{MinVersion: 1, MaxVersion: peer.Version, MaxRequests: 1}
	l.session = transfer.NewSession(l.Link, hello, swarm.ID{}, l, time.Now)
}

// Opened implements pairing.End.
func (l *link) Opened() { l.session.Open() }

// Control implements transfer.LinkEvents.
func (l *link) Control(b []byte) { l.session.Control(b) }

// Data implements transfer.LinkEvents.
func (l *link) Data(b []byte) { l.session.Data(b) }

// Drain implements transfer.LinkEvents.
func (l *link) Drain() {}

// Closed implements transfer.LinkEvents.
func (l *link) Closed(reason peer.CloseReason) {
	l.side.say(message{Type: "closed", Link: l.Number})
}

// Ready implements transfer.Handler.
func (l *link) Ready(peer.Hello) error {
	l.side.say(message{Type: "ready", Link: l.Number})
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
		err = bench.Obey(in, func(m message) error {
			switch m.Type {
			case "begin":
				return s.links.Begin(m.Link)
			case "signal":
				return s.links.Handle(m.Link, *m.Signal)
			case "usage":
				u := s.usage()
				return out.Write(message{Type: "usage", Usage: &u})
			}
			return nil
		})
		return errors.Join(err, s.close())
	}
}
