package transferbench

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/lab/bench/pairing"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// outstanding is how many pieces a receiver has asked for and not got: what a seed queues for one link.
const outstanding = 256

// askAtOnce is the number of pieces in one request.
const askAtOnce = 16

// linkStack is our path: a sender that serves pieces as a seed does, and a receiver that asks for them and verifies
// them as a viewer does.
type linkStack struct {
	host
	*pairing.Links[*linkEnd]
	rtc      *rtclink.Host
	content  *content
	uploader *transfer.Uploader
	stop     context.CancelFunc
	wg       sync.WaitGroup

	requester *background.Requester // of the background lane; nil: all is foreground
}

func newLinkStack(h host) (*linkStack, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &linkStack{host: h, content: newContent(), uploader: transfer.NewUploader(time.Now), stop: cancel}
	cfg := rtclink.Config{
		Listen: net.JoinHostPort(h.setup.Addr, "0"), Loopback: true, SocketPerLink: !h.setup.Send,
		InFlight: h.setup.InFlight, Plan: peer.Plan{V: 1, Data: h.setup.Channels, Message: h.setup.Message},
	}
	s.lay()
	var err error
	if s.rtc, err = rtclink.Listen(cfg); err != nil {
		cancel()
		return nil, err
	}
	s.Links = pairing.New(s.rtc, func(link int, m pairing.Signal) {
		s.signal(link, signal{Description: m.Description, Candidate: m.Candidate})
	}, func() *linkEnd { return &linkEnd{stack: s} })
	s.wg.Go(func() { s.uploader.Run(ctx) })
	return s, nil
}

func (s *linkStack) begin(link int) error { return s.Begin(link) }

func (s *linkStack) handle(link int, m signal) error {
	return s.Handle(link, pairing.Signal{Description: m.Description, Candidate: m.Candidate})
}

func (s *linkStack) start(link int) {
	if e, ok := s.Get(link); ok && !s.setup.Send {
		e.ask(outstanding)
	}
}

func (s *linkStack) buffers() [2]int {
	b := s.rtc.Buffers()
	return [2]int{b.Read, b.Write}
}

func (s *linkStack) close() error {
	s.stop()
	s.wg.Wait()
	return s.rtc.Close()
}

// linkEnd is one end of one link.
type linkEnd struct {
	pairing.Base
	pairing.Serving
	stack    *linkStack
	session  *transfer.Session
	download *transfer.Download
	target   *transfer.Target

	mu   sync.Mutex
	next int // guarded by mu: piece to ask for
	owed int // guarded by mu: pieces to ask for again
}

// Made implements pairing.End.
func (e *linkEnd) Made() {
	hello := peer.Hello{MinVersion: 1, MaxVersion: peer.Version, MaxRequests: outstanding}
	e.session = transfer.NewSession(e.Link, hello, swarm.ID{}, e, time.Now)
	e.download = transfer.NewDownload(e.session.Send, time.Now, e)
	e.lay()
	e.target = &transfer.Target{Segment: segment.ID{1}, Certificate: &certificate.Certificate{Length: peer.MaxSegment, Digests: e.stack.content.digests}}
}

// Arrived implements transfer.DownloadEvents.
func (e *linkEnd) Arrived(o transfer.Order, data []byte, matches bool) {
	e.download.Remove(o.ID)
	if !matches {
		return // nothing counts that does not verify
	}
	e.stack.got(len(data))
	e.mu.Lock()
	e.owed++
	ask := e.owed >= askAtOnce
	if ask {
		e.owed -= askAtOnce
	}
	e.mu.Unlock()
	if ask {
		e.ask(askAtOnce)
	}
}

// Wasted implements transfer.DownloadEvents.
func (e *linkEnd) Wasted(int) {}

func (e *linkEnd) ask(n int) {
	e.mu.Lock()
	pieces := make([]int, n)
	for i := range pieces {
		pieces[i] = (e.next + i) % peer.MaxPieces
	}
	e.next += n
	e.mu.Unlock()
	e.download.Request(e.target, e.stack.lane(), "bench", pieces...)
}

// Opened implements pairing.End.
func (e *linkEnd) Opened() {
	upload := e.Serve(e.stack.uploader, transfer.UploadConfig{
		Link: e.Link, Session: e.session, Pieces: e.stack.content, MaxRequests: outstanding, Background: e.stack.lane() == peer.Background,
	})
	if e.stack.lane() == peer.Background {
		upload.Acknowledged(e.Link)
	}
	e.session.Open()
}

// Control implements transfer.LinkEvents.
func (e *linkEnd) Control(b []byte) { e.session.Control(b) }

// Data implements transfer.LinkEvents.
func (e *linkEnd) Data(b []byte) { e.session.Data(b) }

// Closed implements transfer.LinkEvents.
func (e *linkEnd) Closed(peer.CloseReason) {}

// Ready implements transfer.Handler.
func (e *linkEnd) Ready(peer.Hello) error {
	e.stack.open(e.Number)
	return nil
}

// Piece implements transfer.Handler.
func (e *linkEnd) Piece(m peer.Data) error { return e.download.Data(m) }
