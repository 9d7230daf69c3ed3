package seed

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const drainWait = 3 * time.Second // for farewells and links to end

// viewerLinks are the links to viewers, from their offers on, and what serves them.
type viewerLinks struct {
	self     signal.ID
	port     Links
	outbox   *outbox
	tasks    *tasks
	supply   *supply
	budgets  *budgets
	uploader *transfer.Uploader
	places   *places
	reach    *reach
	streams  *streams
	sink     metric.Sink
	log      *slog.Logger
	now      func() time.Time

	mu  sync.Mutex
	all map[signal.ID]*viewerLink // guarded by mu; by link
}

// signal takes in what a viewer signals. t is the title that came with it; full: there was no room for it.
func (l *viewerLinks) signal(m *bus.Signal, from party, t *title, full bool) {
	if m.Kind == "offer" {
		l.offer(m, from, t, full)
		return
	}
	v := l.get(m.Link)
	if v == nil || v.from.session != m.From {
		return // a signal of another viewer's link, or of one that is gone
	}
	switch m.Kind {
	case "candidate":
		v.candidates.theirs(transfer.Candidate{Candidate: m.Candidate, Mid: m.Mid, Line: uint16(m.MLine)})
	case "end":
		v.candidates.theirs(transfer.Candidate{End: true})
	case "fail":
		v.end(peer.CloseFailed, peer.ByeLeaving)
	}
}

// offer begins a link, or says why not. A second one of a viewer in a swarm takes the place of the first.
func (l *viewerLinks) offer(m *bus.Signal, from party, t *title, full bool) {
	var v, old, displaced *viewerLink
	reason := ""
	switch {
	case t == nil && full, t != nil && l.supply.issuer.takedowns.off(t.site.name):
		reason = "busy" // to be tried again, unlike refused
	case t == nil || t.swarm != m.Swarm:
		reason = "refused"
	default:
		v = newViewerLink(l, t, m.Link, m.Tracker, from)
		if old, displaced, reason = l.admit(v); reason == "" && !l.tasks.begin(func() { v.answer(m) }) {
			l.drop(v)
			reason = "refused"
		}
	}
	if reason != "" {
		if v != nil {
			v.cancel()
		}
		l.outbox.signal(m.Tracker, &bus.Signal{Signal: signal.Signal{
			Swarm: m.Swarm, From: l.self, To: m.From, Role: "seed", Link: m.Link, Kind: "fail", Reason: reason,
		}})
	}
	if old != nil {
		old.end(peer.CloseClosed, peer.ByeReplaced)
	}
	if displaced != nil {
		l.sink.Add(mDisplaced, 1, displacedHalfOpen)
		displaced.giveUp()
	}
}

// admit gives a link a place, or says why there is none. old is the link that it replaces, displaced one that lost its place to it.
func (l *viewerLinks) admit(v *viewerLink) (old, displaced *viewerLink, refused string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all[v.id] != nil {
		return nil, nil, "refused"
	}
	for _, o := range l.all {
		if o.from.session == v.from.session && o.title == v.title {
			old = o
		}
	}
	displaced, ok := l.places.offer(v, old)
	if !ok {
		return nil, nil, "busy"
	}
	l.all[v.id] = v
	v.title.links.Add(1)
	return old, displaced, ""
}

// place gives a link that has opened its place, if need be another's.
func (l *viewerLinks) place(v *viewerLink) bool {
	v.use()
	displaced, why, ok := l.places.opened(v)
	switch {
	case !ok:
		v.end(peer.CloseLimit, peer.ByeOverLimit)
		return false
	case displaced == nil:
		return true
	}
	l.sink.Add(mDisplaced, 1, why)
	if why == displacedIdle {
		displaced.end(peer.CloseIdle, peer.ByeIdle)
	} else {
		displaced.end(peer.CloseLimit, peer.ByeOverLimit)
	}
	return true
}

// drop forgets a link.
func (l *viewerLinks) drop(v *viewerLink) {
	v.cancel()
	l.places.leave(v)
	l.mu.Lock()
	if l.all[v.id] == v {
		delete(l.all, v.id)
		v.title.links.Add(-1)
	}
	l.mu.Unlock()
	l.count()
}

func (l *viewerLinks) count() {
	open, half := l.places.counts()
	l.sink.Set(mLinks, float64(open))
	l.sink.Set(mHalfOpen, float64(half))
}

func (l *viewerLinks) get(id signal.ID) *viewerLink {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[id]
}

func (l *viewerLinks) list() []*viewerLink {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.all))
}

// undelivered ends a link whose viewer did not get the answer.
func (l *viewerLinks) undelivered(m *bus.Signal) {
	if v := l.get(m.Link); v != nil && m.Kind == "answer" {
		v.end(peer.CloseFailed, peer.ByeLeaving)
	}
}

// withhold rejects what viewers have asked for of segments that are not served any more.
func (l *viewerLinks) withhold(gone ...segment.ID) {
	for _, v := range l.list() {
		_, upload := v.conn.parts()
		for _, id := range gone {
			if upload != nil {
				upload.Withdraw(id)
			}
		}
	}
}

// tick keeps links alive, and ends those that did not open in time and those of sites that are off: their viewers are told by the
// trackers, and a viewer that does not listen gets nothing either.
func (l *viewerLinks) tick() {
	for _, v := range l.places.late() {
		v.giveUp()
	}
	l.count()
	for _, v := range l.list() {
		if l.supply.issuer.takedowns.off(v.title.site.name) {
			v.end(peer.ClosePolicy, peer.ByePolicy)
		}
		v.tick()
	}
	l.streams.tick()
}

// drain ends all links and waits for them, for a while: the host that owns them ends what is left.
func (l *viewerLinks) drain() {
	all := l.list()
	for _, v := range all {
		v.end(peer.CloseShutdown, peer.ByeDraining)
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainWait)
	defer cancel()
	for _, v := range all {
		link := v.conn.wire()
		if link == nil {
			continue
		}
		select {
		case <-link.Done():
		case <-ctx.Done():
			return
		}
	}
}
