package transportbench

import (
	"fmt"
	"net/netip"

	"github.com/leeway-video/leeway/internal/lab/baseline/bare"
	"github.com/leeway-video/leeway/internal/transfer"
)

// plainStack is the yardstick: a data channel of pion's with nothing of ours around it, which knows of no lanes.
type plainStack struct{ ends bare.Ends }

const (
	plainMessage = 16384
	plainBuffer  = 1 << 20 // what a channel may hold, as pion's flow-control example has it
)

func newPlainStack(p place) (*plainStack, error) {
	addr, err := netip.ParseAddr(p.setup.Addr)
	if err != nil {
		return nil, err
	}
	return &plainStack{bare.Ends{
		Config: bare.Config{Addr: addr, Channels: 1, Message: plainMessage, Buffer: plainBuffer, Received: func(int) {}},
		Opened: func(link int) { p.say(message{Type: sayOpen, Link: link}) },
		Say: func(link int, sdp string) {
			p.say(message{Type: saySignal, Link: link, Signal: &signal{Description: &transfer.Description{SDP: sdp}}})
		},
	}}, nil
}

func (s *plainStack) begin(link int) error { return s.ends.Offer(link) }

func (s *plainStack) handle(link int, m signal) error {
	if m.Description == nil {
		return fmt.Errorf("link %d: a signal without a description", link)
	}
	return s.ends.Hear(link, m.Description.SDP)
}

func (s *plainStack) start()       { s.ends.PumpAll() }
func (*plainStack) burst(int)      {}
func (s *plainStack) close() error { return s.ends.Close() }
