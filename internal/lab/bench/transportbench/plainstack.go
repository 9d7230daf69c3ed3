package transportbench

import (
	"fmt"
	"net/netip"
	"sync"

	"github.com/leeway-video/leeway/internal/lab/baseline/bare"
	"github.com/leeway-video/leeway/internal/transfer"
)

// plainStack is the yardstick: a data channel of pion's with nothing of ours around it, which knows of no lanes.
type plainStack struct {
	place
	peers map[int]*bare.Peer
	wg    sync.WaitGroup
}

const (
	plainMessage = 16384
	plainBuffer  = 1 << 20 // what a channel may hold, as pion's flow-control example has it
)

func newPlainStack(p place) *plainStack { return &plainStack{place: p, peers: map[int]*bare.Peer{}} }

func (s *plainStack) add(link int) (*bare.Peer, error) {
	addr, err := netip.ParseAddr(s.setup.Addr)
	if err != nil {
		return nil, err
	}
	p, err := bare.New(bare.Config{Addr: addr, Channels: 1, Message: plainMessage, Buffer: plainBuffer, Received: func(int) {}})
	if err != nil {
		return nil, err
	}
	s.peers[link] = p
	s.wg.Go(func() {
		<-p.Opened()
		s.say(message{Type: sayOpen, Link: link})
	})
	return p, nil
}

func (s *plainStack) begin(link int) error {
	p, err := s.add(link)
	if err != nil {
		return err
	}
	sdp, err := p.Offer()
	if err == nil {
		s.say(message{Type: saySignal, Link: link, Signal: &signal{Description: &transfer.Description{SDP: sdp}}})
	}
	return err
}

func (s *plainStack) handle(link int, m signal) error {
	if m.Description == nil {
		return fmt.Errorf("link %d: a signal without a description", link)
	}
	if p := s.peers[link]; p != nil {
		return p.Accept(m.Description.SDP)
	}
	p, err := s.add(link)
	if err != nil {
		return err
	}
	sdp, err := p.Answer(m.Description.SDP)
	if err == nil {
		s.say(message{Type: saySignal, Link: link, Signal: &signal{Description: &transfer.Description{SDP: sdp}}})
	}
	return err
}

func (s *plainStack) start() {
	for _, p := range s.peers {
		p.Pump()
	}
}

func (*plainStack) burst(int) {}

func (s *plainStack) close() error {
	var err error
	for _, p := range s.peers {
		if e := p.Close(); e != nil {
			err = e
		}
	}
	return err
}
