package viewer

import (
	"bytes"
	"container/heap"
	"fmt"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// world is virtual time: everything that happens in a simulation happens in it, in an order that only the inputs decide.
// It is the Loop of every viewer in it.
type world struct {
	now   time.Time
	queue events
	seq   int
	// routers are lines whose router holds more bytes than routerQueue.
	routers map[*testkit.Line]int
}

type event struct {
	at  time.Time
	seq int
	f   func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

var worldBegin = time.Unix(1_800_000_000, 0)

func newWorld() *world { return &world{now: worldBegin} }

func (w *world) Now() time.Time { return w.now }
func (w *world) Post(f func())  { w.at(w.now, f) }

func (w *world) at(t time.Time, f func()) {
	w.seq++
	heap.Push(&w.queue, event{t, w.seq, f})
}

func (w *world) After(d time.Duration, f func()) (stop func()) {
	stopped := false
	w.at(w.now.Add(max(d, 0)), func() {
		if !stopped {
			f()
		}
	})
	return func() { stopped = true }
}

func (w *world) Go(work, done func()) {
	work()
	w.Post(done)
}

// run lets a stretch of time pass.
func (w *world) run(d time.Duration) {
	until := w.now.Add(d)
	for len(w.queue) > 0 && !w.queue[0].at.After(until) {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.f()
	}
	w.now = until
}

// node is one machine with its line: bytes per second, and the time that a packet takes between it and the core of the net.
type node struct {
	w        *world
	name     string
	up, down testkit.Line
	delay    time.Duration
	garble   func([]byte) []byte // what becomes of all data that it sends
	says     func([]byte) []byte // and of control messages; nil: nothing
	apart    bool                // meets others that are apart by a relay alone
	net      int                 // which network it is in: links made in another carry nothing any more
	blocks   func(*node) bool    // whether a link to a node never opens; nil: none does
}

// flip makes data wrong that a node sends, and lose has it lost.
func flip(b []byte) []byte { b[len(b)-1] ^= 1; return b }
func lose([]byte) []byte   { return nil }

// oneWay is the delay between two nodes that are not said to be elsewhere.
const oneWay = 10 * time.Millisecond

// routerQueue is what the buffer of a line holds: more waits in the link's own.
const routerQueue = 32 << 10

// newNode has half of oneWay to the core.
func newNode(w *world, name string, up, down float64) *node {
	return &node{w: w, name: name, up: testkit.Line{Rate: up}, down: testkit.Line{Rate: down}, delay: oneWay / 2}
}

// pathTo is how a link to another node goes.
func (n *node) pathTo(to *node) transfer.Path {
	if n.apart && to != nil && to.apart {
		return transfer.Relay
	}
	return transfer.Direct
}

// away is the delay to another node.
func (n *node) away(to *node) time.Duration { return n.delay + to.delay }

// send carries bytes from one node to another; left is called when they are out of the uplink.
func (n *node) send(to *node, size int, left, arrived func()) {
	w := n.w
	w.at(n.up.Pass(w.now, size), func() {
		left()
		w.at(to.down.Pass(w.now.Add(n.away(to)), size), func() {
			to.acknowledge((size + packetBytes - 1) / packetBytes * sackBytes)
			arrived()
		})
	})
}

// acknowledge has the uplink carry bytes that no load waits for.
func (n *node) acknowledge(size int) { n.up.Pass(n.w.now, size) }

// behind is how long a small packet waits behind what a line has to send: what does not fit into its buffer is behind it.
func (w *world) behind(l *testkit.Line) time.Duration {
	return min(l.Wait(w.now), time.Duration(float64(max(routerQueue, w.routers[l]))/l.Rate*float64(time.Second)))
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// simLink is one end of a link in the world. It satisfies OfferedLink.
type simLink struct {
	w        *world
	own, far *node
	net      int // of own, when the link was made
	other    *simLink
	events   transfer.LinkEvents
	inFlight int
	lastly   time.Time // when the last control message arrives: they stay in order
	blocked  bool
	closed   bool
	garble   func([]byte) []byte // what becomes of data on its way; nil from it: nothing arrives
	done     chan struct{}
}

// bound of what a link has in flight: what the path holds and as much again in its queue, as links have it.
func (l *simLink) bound() int {
	path := min(l.own.up.Rate, l.far.down.Rate) * 2.8 * l.own.away(l.far).Seconds()
	return max(32<<10, l.w.routers[&l.own.up], min(int(path), 768<<10))
}

// Offer implements Links.
func (n *node) Offer(_ LinkSettings, events transfer.LinkEvents) (OfferedLink, transfer.Description, error) {
	l := &simLink{w: n.w, own: n, net: n.net, events: events, done: make(chan struct{})}
	sdp := fmt.Sprintf("%s %d", n.name, n.w.seq)
	n.w.seq++
	simOffers[sdp] = l
	return l, transfer.Description{SDP: sdp, Plan: peer.DefaultPlan}, nil
}

// simOffers is where answers find their offers; descriptions never repeat within a process.
var simOffers = map[string]*simLink{}

// Answer implements Links.
func (n *node) Answer(_ LinkSettings, offer transfer.Description, events transfer.LinkEvents) (transfer.Link, transfer.Description, error) {
	a := simOffers[offer.SDP]
	if a == nil {
		return nil, transfer.Description{}, fmt.Errorf("no offer %q", offer.SDP)
	}
	delete(simOffers, offer.SDP)
	b := &simLink{w: n.w, own: n, net: n.net, far: a.own, other: a, events: events, done: make(chan struct{})}
	a.far, a.other = n, b
	return b, transfer.Description{SDP: "answer " + offer.SDP, Plan: offer.Plan}, nil
}

// Accept implements OfferedLink: two round trips later the link is open on both sides.
func (l *simLink) Accept(d transfer.Description) error {
	if !strings.HasPrefix(d.SDP, "answer ") {
		return fmt.Errorf("%q is no answer", d.SDP)
	}
	l.w.After(4*l.own.away(l.far), func() {
		if l.own.blocks != nil && l.own.blocks(l.far) {
			return
		}
		if !l.closed && !l.other.closed {
			l.other.events.Open()
			l.events.Open()
		}
	})
	return nil
}

// cut says whether an end of the link has gone to another network, so that nothing arrives.
func (l *simLink) cut() bool { return l.own.net != l.net || l.far.net != l.other.net }

func (l *simLink) SendControl(m []byte) {
	b := bytes.Clone(m)
	if l.closed || l.far == nil || l.cut() { // an offer that no peer has answered
		return
	}
	if l.own.says != nil {
		b = l.own.says(b)
	}
	wait := l.w.behind(&l.own.up) + l.own.away(l.far) + l.w.behind(&l.far.down)
	l.lastly = later(l.lastly, l.w.now.Add(wait))
	l.w.at(l.lastly, func() {
		if !l.other.closed {
			l.other.events.Control(b)
		}
	})
}

func (l *simLink) SendData(m []byte) bool {
	if l.closed || l.cut() || l.inFlight+len(m) > l.bound() {
		l.blocked = !l.closed
		return false
	}
	b := bytes.Clone(m)
	for _, garble := range []func([]byte) []byte{l.garble, l.own.garble} {
		if garble == nil {
			continue
		}
		if b = garble(b); b == nil {
			return true
		}
	}
	l.inFlight += len(b)
	l.own.send(l.far, len(b), func() {
		l.inFlight -= len(b)
		if l.blocked && l.inFlight <= l.bound()/4*3 && !l.closed {
			l.blocked = false
			l.events.Drain()
		}
	}, func() {
		if !l.other.closed {
			l.other.events.Data(b)
		}
	})
	return true
}

// SendBackground implements background.Link: what it sends waits in the same line.
func (l *simLink) SendBackground(m []byte) bool {
	if l.closed {
		return false
	}
	if l.cut() {
		return true
	}
	b := bytes.Clone(m)
	for _, garble := range []func([]byte) []byte{l.garble, l.own.garble} {
		if garble == nil {
			continue
		}
		if b = garble(b); b == nil {
			return true
		}
	}
	l.own.send(l.far, len(b), func() {}, func() {
		if !l.other.closed {
			l.other.events.Data(b)
		}
	})
	return true
}

// SendAck implements background.Link.
func (l *simLink) SendAck(m []byte) {
	b := bytes.Clone(m)
	if l.cut() {
		return
	}
	l.own.acknowledge(len(b) + ackAround)
	l.w.After(l.w.behind(&l.own.up)+l.own.away(l.far)+l.w.behind(&l.far.down), func() {
		if events, ok := l.other.events.(transfer.AckEvents); ok && !l.other.closed {
			events.Ack(b)
		}
	})
}

func (l *simLink) Room(int) (int, bool) { return 0, !l.closed }
func (l *simLink) Payload() int         { return 1156 }

func (l *simLink) Close(reason peer.CloseReason, last []byte) {
	if l.closed {
		return
	}
	if last != nil {
		l.SendControl(last)
	}
	l.closed = true
	l.w.Post(func() { l.events.Closed(reason) })
	if l.other != nil && !l.cut() {
		l.w.After(2*l.own.away(l.far), func() { l.other.Close(peer.CloseClosed, nil) })
	}
	close(l.done)
}

func (l *simLink) MaxMessage() int                       { return peer.DefaultPlan.Message }
func (l *simLink) Path() transfer.Path                   { return l.own.pathTo(l.far) }
func (l *simLink) AddCandidate(transfer.Candidate) error { return nil }
func (l *simLink) Done() <-chan struct{}                 { return l.done }
