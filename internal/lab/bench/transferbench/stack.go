package transferbench

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/netip"

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
		return newPionStack(h)
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
	ends bare.Ends
}

// bareBuffer is what a bare channel may hold, as pion's flow-control example has it.
const bareBuffer = 1 << 20

func newPionStack(h host) (stack, error) {
	addr, err := netip.ParseAddr(h.setup.Addr)
	if err != nil {
		return nil, err
	}
	return &pionStack{h, bare.Ends{
		Config: bare.Config{
			Addr: addr, Tuned: h.setup.Kind == kindTuned, Channels: h.setup.Channels, Message: h.setup.Message, Buffer: bareBuffer, Received: h.got,
		},
		Opened: h.open,
		Say:    func(link int, sdp string) { h.signal(link, signal{Description: &transfer.Description{SDP: sdp}}) },
	}}, nil
}

func (s *pionStack) begin(link int) error            { return s.ends.Offer(link) }
func (s *pionStack) handle(link int, m signal) error { return s.ends.Hear(link, m.Description.SDP) }
func (s *pionStack) buffers() [2]int                 { return [2]int{} }
func (s *pionStack) close() error                    { return s.ends.Close() }

func (s *pionStack) start(link int) {
	if s.setup.Send {
		s.ends.Pump(link)
	}
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
