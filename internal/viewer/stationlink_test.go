package viewer_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/viewer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// linkEnd is one end of a link.
type linkEnd struct {
	s       *station
	sdp     string
	other   *linkEnd // set before the link is open
	control *pipe    // guarded by s.mu: to the other end; nil: nothing has answered yet
	data    *pipe    // guarded by s.mu
	done    chan struct{}

	calls  sync.Mutex // no call of events runs beside another, and none after Closed
	events transfer.LinkEvents
	over   bool // guarded by calls

	ending atomic.Bool
}

func (s *station) newEnd(events transfer.LinkEvents) *linkEnd {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	return &linkEnd{s: s, sdp: fmt.Sprint("v=0 ", s.made), events: events, done: make(chan struct{})}
}

// call has the events hear of something, unless the link is over.
func (e *linkEnd) call(f func(transfer.LinkEvents)) {
	e.calls.Lock()
	defer e.calls.Unlock()
	if !e.over {
		f(e.events)
	}
}

// viewerLinks is how viewers have links of a station, and seedLinks is how its seed has them.
type (
	viewerLinks struct{ *station }
	seedLinks   struct{ *station }
)

// Offer implements viewer.Links.
func (s viewerLinks) Offer(_ viewer.LinkSettings, events transfer.LinkEvents) (viewer.OfferedLink, transfer.Description, error) {
	e := s.newEnd(events)
	s.mu.Lock()
	s.offers[e.sdp] = e
	s.mu.Unlock()
	return e, transfer.Description{SDP: e.sdp, Plan: peer.DefaultPlan}, nil
}

// answer makes the other end of an offered link.
func (s *station) answer(offer transfer.Description, events transfer.LinkEvents) (transfer.Link, transfer.Description, error) {
	b := s.newEnd(events)
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.offers[offer.SDP]
	if a == nil {
		return nil, transfer.Description{}, fmt.Errorf("no offer %q", offer.SDP)
	}
	delete(s.offers, offer.SDP)
	a.other, b.other = b, a
	for _, e := range []*linkEnd{a, b} {
		far := e.other
		e.control = newPipe(func(m []byte) { far.call(func(v transfer.LinkEvents) { v.Control(m) }) }, func() { far.Close(peer.CloseClosed, nil) })
		e.data = newPipe(func(m []byte) { far.call(func(v transfer.LinkEvents) { v.Data(m) }) }, func() {})
	}
	return b, transfer.Description{SDP: "v=0 answer", Plan: offer.Plan}, nil
}

// Answer implements viewer.Links.
func (s viewerLinks) Answer(_ viewer.LinkSettings, offer transfer.Description, events transfer.LinkEvents) (transfer.Link, transfer.Description, error) {
	return s.answer(offer, events)
}

// Answer implements seed.Links.
func (s seedLinks) Answer(offer transfer.Description, events transfer.LinkEvents) (transfer.Link, transfer.Description, error) {
	return s.answer(offer, events)
}

// Accept implements viewer.OfferedLink: two round trips later the link is open on both sides.
func (e *linkEnd) Accept(transfer.Description) error {
	time.AfterFunc(4*stationDelay, func() {
		e.other.call(transfer.LinkEvents.Open)
		e.call(transfer.LinkEvents.Open)
	})
	return nil
}

// pipes are those to the other end, nil while nothing has answered.
func (e *linkEnd) pipes() (control, data *pipe) {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	return e.control, e.data
}

func (e *linkEnd) SendControl(m []byte) {
	if control, _ := e.pipes(); control != nil {
		control.send(m)
	}
}

func (e *linkEnd) SendData(m []byte) bool {
	_, data := e.pipes()
	data.send(m)
	return true
}

func (e *linkEnd) MaxMessage() int                       { return peer.DefaultPlan.Message }
func (e *linkEnd) Path() transfer.Path                   { return transfer.Direct }
func (e *linkEnd) AddCandidate(transfer.Candidate) error { return nil }
func (e *linkEnd) Done() <-chan struct{}                 { return e.done }

func (e *linkEnd) Close(reason peer.CloseReason, farewell []byte) {
	if e.ending.Swap(true) {
		return
	}
	if farewell != nil {
		e.SendControl(farewell)
	}
	e.s.mu.Lock()
	delete(e.s.offers, e.sdp)
	e.s.mu.Unlock()
	if control, data := e.pipes(); control != nil {
		control.end()
		data.end()
	}
	go func() {
		e.call(func(v transfer.LinkEvents) {
			e.over = true
			v.Closed(reason)
		})
		close(e.done)
	}()
}

// pipe carries messages one way, in order, each after the same delay.
type pipe struct {
	in    chan parcel
	ended atomic.Bool
}

type parcel struct {
	at      time.Time
	message []byte // nil: the end
}

func newPipe(hear func([]byte), over func()) *pipe {
	p := &pipe{in: make(chan parcel, 1<<12)}
	go func() {
		for m := range p.in {
			<-time.After(time.Until(m.at))
			if m.message == nil {
				break
			}
			hear(m.message)
		}
		over()
	}()
	return p
}

func (p *pipe) send(message []byte) {
	if !p.ended.Load() {
		p.in <- parcel{time.Now().Add(stationDelay), append([]byte{}, message...)}
	}
}

func (p *pipe) end() {
	if !p.ended.Swap(true) {
		p.in <- parcel{at: time.Now().Add(stationDelay)}
	}
}
