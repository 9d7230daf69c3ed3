// Package pairing brings about the links between two processes of a bench: each says signals of numbered links, and handles what
// the other said.
package pairing

import (
	"fmt"
	"iter"
	"maps"
	"sync"

	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Signal is what one end of a link tells the other before they are linked.
type Signal struct {
	Description *transfer.Description `json:"description,omitempty"`
	Candidate   *transfer.Candidate   `json:"candidate,omitempty"`
}

// End is one end of a link; it embeds a Base.
type End interface {
	transfer.LinkEvents
	// Made is called when there is a Link, before the other side hears of it; Opened behind it, when the link has opened.
	Made()
	Opened()
	base() *Base
}

// Base is what all ends have.
type Base struct {
	Number int
	Link   *rtclink.Link // from Made on

	say    func(Signal)
	opened func()
	made   chan struct{} // closed behind Made

	mu      sync.Mutex
	out     bool                 // guarded by mu: the description is
	waiting []transfer.Candidate // guarded by mu: for that
}

func (b *Base) base() *Base { return b }

// Candidate implements transfer.LinkEvents: candidates go out behind the description.
func (b *Base) Candidate(c transfer.Candidate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.out {
		b.waiting = append(b.waiting, c)
		return
	}
	b.say(Signal{Candidate: &c})
}

// Open implements transfer.LinkEvents.
func (b *Base) Open() {
	<-b.made
	b.opened()
}

func (b *Base) describe(d transfer.Description) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.say(Signal{Description: &d})
	b.out = true
	for _, c := range b.waiting {
		b.say(Signal{Candidate: &c})
	}
	b.waiting = nil
}

// Links are those of one process.
type Links[E End] struct {
	host *rtclink.Host
	say  func(link int, s Signal)
	end  func() E

	mu   sync.Mutex
	ends map[int]E // guarded by mu
}

// New makes the links of a host; end makes one that is not linked yet.
func New[E End](host *rtclink.Host, say func(link int, s Signal), end func() E) *Links[E] {
	return &Links[E]{host: host, say: say, end: end, ends: map[int]E{}}
}

// Begin offers a link.
func (l *Links[E]) Begin(number int) error {
	e := l.prepare(number)
	link, offer, err := l.host.Offer(e)
	if err != nil {
		return err
	}
	l.made(e, link, offer)
	return nil
}

// Handle takes what the other side says of a link: an offer is answered.
func (l *Links[E]) Handle(number int, s Signal) error {
	e, known := l.Get(number)
	switch {
	case s.Description == nil && s.Candidate == nil:
		return fmt.Errorf("link %d: an empty signal", number)
	case s.Description == nil && known:
		_ = e.base().Link.AddCandidate(*s.Candidate) // one path fewer
		return nil
	case s.Description == nil:
		return fmt.Errorf("link %d: a candidate before the offer", number)
	case known:
		return e.base().Link.Accept(*s.Description)
	}
	e = l.prepare(number)
	link, answer, err := l.host.Answer(*s.Description, e)
	if err != nil {
		return err
	}
	l.made(e, link.(*rtclink.Link), answer)
	return nil
}

func (l *Links[E]) prepare(number int) E {
	e := l.end()
	b := e.base()
	b.Number, b.say = number, func(s Signal) { l.say(number, s) }
	b.opened, b.made = e.Opened, make(chan struct{})
	return e
}

func (l *Links[E]) made(e E, link *rtclink.Link, d transfer.Description) {
	b := e.base()
	b.Link = link
	e.Made()
	close(b.made)
	l.mu.Lock()
	l.ends[b.Number] = e
	l.mu.Unlock()
	b.describe(d)
}

// Get returns an end by its link's number.
func (l *Links[E]) Get(number int) (e E, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok = l.ends[number]
	return e, ok
}

// All goes through the ends, in any order.
func (l *Links[E]) All() iter.Seq[E] {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Values(maps.Clone(l.ends))
}

// Drop ends a link; one that is not there is dropped already.
func (l *Links[E]) Drop(number int) {
	e, known := l.Get(number)
	if !known {
		return
	}
	l.mu.Lock()
	delete(l.ends, number)
	l.mu.Unlock()
	e.base().Link.Close(peer.CloseClosed, nil)
}
