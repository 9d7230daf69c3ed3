package peersbench

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"

	"github.com/leeway-video/leeway/internal/lab/baseline/bare"
	"github.com/leeway-video/leeway/internal/lab/bench/pairing"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

const (
	// bareMessage is the size of messages on bare channels, bytes: the same as on channels of Leeway.
	bareMessage = 16384
	// bareBuffer is what such a channel may hold, as pion's flow-control example has it.
	bareBuffer = 1 << 20
	// requestBytes is the size of a request on such a channel, which says how many bytes are wanted.
	requestBytes = 4
	// requestsBound is far above what a client has asked for on one channel.
	requestsBound = 256
)

// bareEnd is data channels of pion's. A request is answered with as many bytes, in order.
type bareEnd struct {
	host
	ends    bare.Ends
	payload []byte
	wg      sync.WaitGroup

	mu      sync.Mutex
	waiting map[lane][]int    // guarded by mu: bytes that are still to come of what a lane has asked for
	serving map[lane]chan int // guarded by mu: sizes that were asked for
	closed  bool              // guarded by mu
}

func newBareEnd(h host) (*bareEnd, error) {
	addr, err := netip.ParseAddr(h.setup.Addr)
	if err != nil {
		return nil, err
	}
	e := &bareEnd{host: h, payload: make([]byte, bareMessage), waiting: map[lane][]int{}, serving: map[lane]chan int{}}
	e.ends = bare.Ends{
		Config: bare.Config{Addr: addr, Tuned: h.setup.Kind == kindTune, Channels: h.setup.Channels, Message: bareMessage, Buffer: bareBuffer},
		Opened: func(link int) { h.moment(link, opened); h.moment(link, usable) },
		Say: func(link int, sdp string) {
			h.say(link, pairing.Signal{Description: &transfer.Description{SDP: sdp, Plan: peer.DefaultPlan}})
		},
		Heard: e.heard,
	}
	return e, nil
}

func (e *bareEnd) begin(link int) error { return e.ends.Offer(link) }

func (e *bareEnd) hear(link int, s pairing.Signal) error {
	if s.Description == nil {
		return nil // a candidate of a browser's, which is in its description too
	}
	return e.ends.Hear(link, s.Description.SDP)
}

func (e *bareEnd) drop(link int) error { return e.ends.Drop(link) }

func (e *bareEnd) run(j job) { e.fetch.begin(j) }

// ask asks for an item on a channel.
func (e *bareEnd) ask(l lane, _, bytes int) error {
	e.mu.Lock()
	e.waiting[l] = append(e.waiting[l], bytes)
	e.mu.Unlock()
	return e.ends.Write(l.Link, l.Channel, binary.BigEndian.AppendUint32(nil, uint32(bytes)))
}

// heard takes a request, or a part of what was asked for.
func (e *bareEnd) heard(link, channel int, m []byte) {
	l := lane{link, channel}
	if e.setup.fetches() {
		e.came(l, len(m))
		return
	}
	if len(m) != requestBytes {
		e.failed(fmt.Errorf("link %d, channel %d: a request of %d bytes", link, channel, len(m)))
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if e.serving[l] == nil {
		wanted := make(chan int, requestsBound)
		e.serving[l] = wanted
		e.wg.Go(func() { e.serve(l, wanted) })
	}
	select {
	case e.serving[l] <- int(binary.BigEndian.Uint32(m)):
	default:
		e.failed(fmt.Errorf("link %d, channel %d: more than %d requests", link, channel, requestsBound))
	}
}

// came notes so many bytes of the items that a lane waits for.
func (e *bareEnd) came(l lane, n int) {
	whole := 0
	e.mu.Lock()
	for n > 0 && len(e.waiting[l]) > 0 {
		part := min(n, e.waiting[l][0])
		n -= part
		if e.waiting[l][0] -= part; e.waiting[l][0] == 0 {
			e.waiting[l] = e.waiting[l][1:]
			whole++
		}
	}
	e.mu.Unlock()
	for range whole {
		e.fetch.arrived(l)
	}
}

// serve sends what was asked for on a channel.
func (e *bareEnd) serve(l lane, wanted <-chan int) {
	for left := range wanted {
		for left > 0 {
			n := min(left, len(e.payload))
			if err := e.ends.Write(l.Link, l.Channel, e.payload[:n]); err != nil {
				return // the link has ended
			}
			left -= n
		}
	}
}

func (e *bareEnd) close() error {
	e.mu.Lock()
	e.closed = true
	for _, wanted := range e.serving {
		close(wanted)
	}
	e.mu.Unlock()
	err := e.ends.Close()
	e.wg.Wait()
	return err
}
