package parts

import (
	"math"
	"slices"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

type stripeID struct {
	stream segment.ID
	stripe int
}

type partID struct {
	stream segment.ID
	turn   uint32
}

// link is what there is of a peer.
type link struct {
	node       *Node
	id         ID
	seed       bool
	follows    []segment.ID        // streams that it follows
	held       map[segment.ID]bool // of which it wants nothing for now
	subscribed map[stripeID]int64  // stripes that this node ever subscribed to: until when pieces may come

	// What it pushes.
	pushes map[uint32]*push
	pushed []uint32  // of pushes, as they were announced
	early  []*early  // data ahead of a certificate
	open   []*opened // pieces that are there in part

	out outgoing
}

// closed is no push ID.
const closed = peer.MaxPushID + 1

// outgoing is what is pushed to a peer.
type outgoing struct {
	told    map[partID]uint32 // the latest parts that it was told of: push IDs
	tells   []partID          // of told, the oldest first
	next    uint32            // push ID
	waiting []queued
	waits   int      // bytes of waiting
	handed  []queued // pieces that were handed over and not sent, without their bytes
}

// queued is a piece that waits for a child.
type queued struct {
	partID
	stripe  int
	segment segment.ID
	request uint32
	data    []byte
	at      int64 // since when
}

func newLink(n *Node, id ID, seed bool) *link {
	return &link{node: n, id: id, seed: seed, held: map[segment.ID]bool{}, subscribed: map[stripeID]int64{}, pushes: map[uint32]*push{},
		out: outgoing{told: map[partID]uint32{}}}
}

func (l *link) following(stream segment.ID) bool { return slices.Contains(l.follows, stream) }

// subscribes notes a subscription of this node. It lasts until ends.
func (l *link) subscribes(at stripeID) { l.subscribed[at] = math.MaxInt64 }

func (l *link) ends(now int64, at stripeID) {
	if l.subscribed[at] > now {
		l.subscribed[at] = min(l.subscribed[at], now+Grace)
	}
}

// sends says whether pieces of any stripe of a stream may come from the peer.
func (l *link) sends(now int64, stream segment.ID) bool {
	for at, until := range l.subscribed {
		if at.stream == stream && until > now {
			return true
		}
	}
	return false
}

// sendsAny says whether pieces of any stream may come.
func (l *link) sendsAny(now int64) bool {
	for _, until := range l.subscribed {
		if until > now {
			return true
		}
	}
	return false
}

// forget takes back what waits and matches.
func (o *outgoing) forget(match func(queued) bool) (gone []queued) {
	o.waiting = slices.DeleteFunc(o.waiting, func(q queued) bool {
		if !match(q) {
			return false
		}
		gone = append(gone, q)
		o.waits -= len(q.data)
		return true
	})
	return gone
}

// close gives up what came of pushes that match.
func (l *link) close(match func(*push) bool) {
	l.open = slices.DeleteFunc(l.open, func(o *opened) bool { return match(o.push) })
	for _, u := range l.pushes {
		if match(u) {
			u.state = refused
			l.waited(u.id)
		}
	}
}

// tell notes that a part is told to the peer, and returns its push ID.
func (o *outgoing) tell(key partID) uint32 {
	if len(o.tells) >= mostPushes {
		delete(o.told, o.tells[0])
		o.tells = o.tells[1:]
	}
	id := o.next
	o.next = (o.next + 1) & peer.MaxPushID
	o.told[key] = id
	o.tells = append(o.tells, key)
	return id
}

// close has nothing more pushed of the parts of a stream that either side has left: the peer has it, or takes it no more.
func (o *outgoing) close(stream segment.ID) {
	for key := range o.told {
		if key.stream == stream {
			o.told[key] = closed
		}
	}
}

// untell has a part told again.
func (o *outgoing) untell(key partID) {
	delete(o.told, key)
	o.tells = slices.DeleteFunc(o.tells, func(k partID) bool { return k == key })
}
