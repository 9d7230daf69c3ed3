package clusterbench

import (
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/loadgen"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	pingEvery = time.Second
	// silence is how long a link may have said nothing and still counts as going on.
	silence = 5 * time.Second
)

// links are the real ones of some sessions, all of this process: each end of each.
type links struct {
	mu   sync.Mutex
	all  []*end // guarded by mu, and err
	err  error
	wg   sync.WaitGroup
	done chan struct{}

	hosts []*rtclink.Host // guarded by mu
}

func newLinks() *links {
	l := &links{done: make(chan struct{})}
	l.wg.Go(l.ping)
	return l
}

// of gives the first n sessions links of their own.
func (l *links) of(n int) func(number int) loadgen.Linker {
	return func(number int) loadgen.Linker {
		if number >= n {
			return nil
		}
		host, err := rtclink.Listen(rtclink.Config{Listen: "127.0.0.1:0", SocketPerLink: true})
		l.mu.Lock()
		defer l.mu.Unlock()
		if err != nil {
			l.err = errors.Join(l.err, err)
			return nil
		}
		l.hosts = append(l.hosts, host)
		return &linker{links: l, host: host, ends: map[signal.ID]*end{}}
	}
}

// ping says something on each open link, as sessions of the library do.
func (l *links) ping() {
	every := time.NewTicker(pingEvery)
	defer every.Stop()
	for {
		select {
		case <-l.done:
			return
		case <-every.C:
		}
		for _, e := range l.open() {
			e.link.SendControl([]byte("ping"))
		}
	}
}

// open lists the ends of links that are open.
func (l *links) open() (all []*end) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.all {
		if e.opened && !e.closed {
			all = append(all, e)
		}
	}
	return all
}

// lost counts those that are closed, or on which nothing is heard any more.
func (l *links) lost(those []*end) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range those {
		if e.closed || time.Since(e.heard) > silence {
			n++
		}
	}
	return n
}

func (l *links) close() error {
	close(l.done)
	l.wg.Wait()
	l.mu.Lock()
	hosts, err := l.hosts, l.err
	l.mu.Unlock()
	for _, h := range hosts {
		err = errors.Join(err, h.Close())
	}
	return err
}

// linker is the links of one session. It belongs to that session's goroutine, but what ends say.
type linker struct {
	links *links
	host  *rtclink.Host
	ends  map[signal.ID]*end // by the peer
}

// end is one session's end of a link.
type end struct {
	linker *linker
	id     signal.ID
	link   transfer.Link

	mu      sync.Mutex
	say     func(transfer.Candidate) // guarded by mu; nil until the description is out
	waiting []transfer.Candidate     // guarded by mu

	opened, closed bool      // guarded by links.mu
	heard          time.Time // guarded by links.mu
}

func newID() (id signal.ID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

func planOf(d transfer.Description) *signal.Plan {
	p := signal.Plan(d.Plan)
	return &p
}

// busy says whether there is a link to a peer already, open or under way.
func (k *linker) busy(peer signal.ID) bool {
	k.links.mu.Lock()
	defer k.links.mu.Unlock()
	e := k.ends[peer]
	return e != nil && !e.closed
}

// Introduced implements loadgen.Linker.
func (k *linker) Introduced(swarm, to signal.ID, say func(signal.Message)) {
	if k.busy(to) {
		return
	}
	e := &end{linker: k, id: newID()}
	l, d, err := k.host.Offer(e)
	if err != nil {
		return
	}
	e.link = l
	k.ends[to] = e
	say(&signal.Signal{Swarm: swarm, To: to, Link: e.id, Kind: "offer", SDP: d.SDP, Plan: planOf(d)})
	e.release(swarm, to, say)
}

// Signal implements loadgen.Linker.
func (k *linker) Signal(m *signal.Signal, say func(signal.Message)) {
	e := k.ends[m.From]
	switch {
	case m.Kind == "offer":
		k.answer(m, say)
	case e == nil || e.id != m.Link:
	case m.Kind == "answer":
		if own, ok := e.link.(*rtclink.Link); ok {
			_ = own.Accept(transfer.Description{SDP: m.SDP, Plan: peer.Plan(*m.Plan)})
		}
	case m.Kind == "candidate":
		_ = e.link.AddCandidate(transfer.Candidate{Candidate: m.Candidate, Mid: m.Mid, Line: uint16(m.MLine)})
	case m.Kind == "end":
		_ = e.link.AddCandidate(transfer.Candidate{End: true})
	case m.Kind == "fail":
		e.link.Close(peer.CloseFailed, nil)
	}
}

func (k *linker) answer(m *signal.Signal, say func(signal.Message)) {
	e := &end{linker: k, id: m.Link}
	refuse := func(reason string) {
		say(&signal.Signal{Swarm: m.Swarm, To: m.From, Link: m.Link, Kind: "fail", Reason: reason})
	}
	if k.busy(m.From) {
		refuse("busy")
		return
	}
	l, d, err := k.host.Answer(transfer.Description{SDP: m.SDP, Plan: peer.Plan(*m.Plan)}, e)
	if err != nil {
		refuse("busy") // a probe's: its description is made up
		return
	}
	e.link = l
	k.ends[m.From] = e
	say(&signal.Signal{Swarm: m.Swarm, To: m.From, Link: m.Link, Kind: "answer", SDP: d.SDP, Plan: planOf(d)})
	e.release(m.Swarm, m.From, say)
}

// release lets candidates go, now that the description is out.
func (e *end) release(swarm, to signal.ID, say func(signal.Message)) {
	e.linker.links.mu.Lock()
	e.linker.links.all = append(e.linker.links.all, e)
	e.linker.links.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.say = func(c transfer.Candidate) {
		s := &signal.Signal{Swarm: swarm, To: to, Link: e.id, Kind: "candidate", Candidate: c.Candidate, Mid: c.Mid, MLine: int(c.Line)}
		if c.End {
			s = &signal.Signal{Swarm: swarm, To: to, Link: e.id, Kind: "end"}
		}
		say(s)
	}
	for _, c := range e.waiting {
		e.say(c)
	}
	e.waiting = nil
}

// Candidate implements transfer.LinkEvents.
func (e *end) Candidate(c transfer.Candidate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.say == nil {
		e.waiting = append(e.waiting, c)
		return
	}
	e.say(c)
}

// Open implements transfer.LinkEvents.
func (e *end) Open() { e.note(func() { e.opened, e.heard = true, time.Now() }) }

// Control implements transfer.LinkEvents.
func (e *end) Control([]byte) { e.note(func() { e.heard = time.Now() }) }

// Data implements transfer.LinkEvents.
func (e *end) Data([]byte) {}

// Drain implements transfer.LinkEvents.
func (e *end) Drain() {}

// Closed implements transfer.LinkEvents.
func (e *end) Closed(peer.CloseReason) { e.note(func() { e.closed = true }) }

func (e *end) note(f func()) {
	e.linker.links.mu.Lock()
	defer e.linker.links.mu.Unlock()
	f()
}
