package transferbench

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/baseline/bare"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// stack is one kind of path end. Calls come from one goroutine.
type stack interface {
	begin(link int) error            // receivers
	handle(link int, s signal) error // what the other end says
	start(link int)                  // all links are open: send, or ask
	buffers() [2]int                 // the kernel's
	close() error
}

// host is what a stack reports to.
type host struct {
	setup  setup
	signal func(link int, s signal)
	open   func(link int)
	got    func(bytes int) // payload bytes; from any goroutine
}

func newStack(h host) (stack, error) {
	switch h.setup.Kind {
	case kindLink, kindLane:
		return newLinkStack(h)
	case kindDefault, kindTuned:
		return &pionStack{host: h, peers: map[int]*bare.Peer{}}, nil
	case kindTCP:
		return newTCPStack(h)
	case kindPage, kindPageLaw, kindPageLane, kindBare:
		return newPageStack(h)
	}
	return nil, fmt.Errorf("no path end is called %q", h.setup.Kind)
}

// pionStack is bare pion.
type pionStack struct {
	host
	peers map[int]*bare.Peer
	wg    sync.WaitGroup
}

// bareBuffer is what a bare channel may hold, as pion's flow-control example has it.
const bareBuffer = 1 << 20

func (s *pionStack) add(link int) (*bare.Peer, error) {
	addr, err := netip.ParseAddr(s.setup.Addr)
	if err != nil {
		return nil, err
	}
	p, err := bare.New(bare.Config{
		Addr: addr, Tuned: s.setup.Kind == kindTuned, Channels: s.setup.Channels, Message: s.setup.Message,
		Buffer: bareBuffer, Received: s.got,
	})
	if err != nil {
		return nil, err
	}
	s.peers[link] = p
	s.wg.Go(func() {
		<-p.Opened()
		s.open(link)
	})
	return p, nil
}

func (s *pionStack) begin(link int) error {
	p, err := s.add(link)
	if err != nil {
		return err
	}
	sdp, err := p.Offer()
	if err == nil {
		s.signal(link, signal{Description: &transfer.Description{SDP: sdp}})
	}
	return err
}

func (s *pionStack) handle(link int, m signal) error {
	if p := s.peers[link]; p != nil {
		return p.Accept(m.Description.SDP)
	}
	p, err := s.add(link)
	if err != nil {
		return err
	}
	sdp, err := p.Answer(m.Description.SDP)
	if err == nil {
		s.signal(link, signal{Description: &transfer.Description{SDP: sdp}})
	}
	return err
}

func (s *pionStack) start(link int) {
	if s.setup.Send {
		s.peers[link].Pump()
	}
}

func (s *pionStack) buffers() [2]int { return [2]int{} }

func (s *pionStack) close() error {
	var err error
	for _, p := range s.peers {
		if e := p.Close(); e != nil {
			err = e
		}
	}
	return err
}

// content is what the link stack serves, again and again: a segment of the largest size, so that its pieces do not stay
// in the processor's cache. It is the same in every process, so that a receiver has the digests.
type content struct {
	data    []byte
	digests [][32]byte
}

func newContent() *content {
	c := &content{data: make([]byte, peer.MaxSegment)}
	_, _ = rand.NewChaCha8([32]byte{}).Read(c.data) // cannot fail
	for i := range peer.MaxPieces {
		c.digests = append(c.digests, sha256.Sum256(c.piece(i)))
	}
	return c
}

func (c *content) piece(i int) []byte { return c.data[i*peer.PieceSize : (i+1)*peer.PieceSize] }

// Piece implements transfer.Pieces.
func (c *content) Piece(_ segment.ID, piece int) ([]byte, transfer.Refusal) {
	return c.piece(piece), transfer.Served
}

type unlimited struct{}

// Take implements transfer.Budget.
func (unlimited) Take(int) (time.Duration, bool) { return 0, true }

type unobserved struct{}

func (unobserved) Sent(peer.Lane, int)             {}
func (unobserved) Promoted(int)                    {}
func (unobserved) Served()                         {}
func (unobserved) Rejected(peer.RejectReason, int) {}
func (unobserved) Canceled(int)                    {}
