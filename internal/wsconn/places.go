package wsconn

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/access"
)

// stay is a socket's place at its admission. Guarded by places.mu; the first five do not change once it has begun to speak.
type stay struct {
	from         netip.Addr     // whose it is
	network      netip.Prefix   // under which it counts; none: it is a proxy's
	trusted      bool           // likewise
	introduced   bool           // whose it is has been said
	client       netip.AddrPort // what was said; not valid without
	watched      bool           // the server says what it does with it
	state        stayState
	since        time.Time
	before, next *Socket
}

type stayState byte

const (
	away stayState = iota
	silent
	spoken
	busy
	through
	idle   // its request was answered, and it asks for nothing
	asking // a request is being answered
)

// longestRequest is how long a request may be answered while others want its connection. A test of a probe server takes 13 s.
const longestRequest = 30 * time.Second

// queue is sockets in the order in which they came.
type queue struct {
	first, last *Socket
	n           int
}

func (q *queue) add(s *Socket, now time.Time) {
	s.since = now
	if s.before = q.last; q.last != nil {
		q.last.next = s
	} else {
		q.first = s
	}
	q.last = s
	q.n++
}

func (q *queue) remove(s *Socket) {
	if s.before != nil {
		s.before.next = s.next
	} else {
		q.first = s.next
	}
	if s.next != nil {
		s.next.before = s.before
	} else {
		q.last = s.before
	}
	s.before, s.next = nil, nil
	q.n--
}

// counts says under what a socket counts: a proxy's under nothing, for many stand behind it.
func (s *stay) counts(trusted bool) {
	s.trusted, s.network = trusted, netip.Prefix{}
	if trusted {
		return
	}
	s.network = access.Customer(s.from) // the bound of one /48 is enough for its honest clients
}

// places are those that an admission gives to sockets whose request is not there yet. When all are taken, a socket that has been silent or
// busy for longer than Patience loses its place to a new one. If there is none, the new socket waits. When there are as many sockets as may
// be, one goes that its server watches: the one that has been idle for longest, else the one whose request has been answered for longest,
// above longestRequest. A client that asks once, keeps its connection, sends no body or does not read would hold it for ever.
type places struct {
	cfg  *AdmissionConfig
	room chan struct{} // a place may be free

	mu     sync.Mutex
	open   int                  // guarded by mu: sockets in all, with those whose request is there
	idle   queue                // guarded by mu
	asking queue                // guarded by mu
	silent queue                // guarded by mu
	spoken int                  // guarded by mu: that have begun to speak, and wait for their turn
	busy   queue                // guarded by mu
	from   map[netip.Prefix]int // guarded by mu: silent, spoken, busy and asking, by network
}

func newPlaces(cfg *AdmissionConfig) *places {
	return &places{cfg: cfg, room: make(chan struct{}, 1), from: map[netip.Prefix]int{}}
}

// oldest is the silent socket that came first.
func (p *places) oldest() *Socket {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.silent.first
}

// enter finds a place for a socket. reason is empty or why it is refused, evicted has lost its place to it, and wait is how
// long until one may.
func (p *places) enter(s *Socket, now time.Time) (reason string, evicted *Socket, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	spare := p.spare(now)
	switch {
	case p.open >= p.cfg.MaxOpen && spare == nil:
		return "total", nil, 0
	case !s.trusted && p.from[s.network] >= p.cfg.MaxPendingPerAddress:
		return "half-open", nil, 0
	case p.silent.n+p.spoken+p.busy.n >= p.cfg.MaxPending:
		if evicted, wait = p.evict(&p.silent, now); evicted == nil {
			return "", nil, wait
		}
	case p.open >= p.cfg.MaxOpen:
		evicted = spare
		p.shift(evicted, away, now)
		p.open--
	}
	p.open++
	p.from[s.network]++
	s.state = silent
	p.silent.add(s, now)
	return "", evicted, 0
}

// evict takes the first of a queue out, if its time is over. Under mu.
func (p *places) evict(q *queue, now time.Time) (evicted *Socket, wait time.Duration) {
	if q.first == nil {
		return nil, p.cfg.Patience
	}
	if wait = p.cfg.Patience - now.Sub(q.first.since); wait > 0 {
		return nil, wait
	}
	evicted = q.first
	p.settle(evicted, away)
	p.open--
	return evicted, 0
}

// begin makes a socket busy that has begun to speak; gone says that it has lost its place, and wait is how long until there is room.
func (p *places) begin(s *Socket, now time.Time) (gone bool, evicted *Socket, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy.n >= p.cfg.MaxBusy {
		evicted, wait = p.evict(&p.busy, now)
	}
	if wait <= 0 && s.state == spoken {
		p.spoken--
		s.state = busy
		p.busy.add(s, now)
	}
	return s.state == away, evicted, wait
}

// speaks notes that a socket has begun to speak; false says that it has lost its place already.
func (p *places) speaks(s *Socket) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.state != silent {
		return false
	}
	p.silent.remove(s)
	s.state = spoken
	p.spoken++
	return true
}

// settle takes a socket out of its queue. Under mu.
func (p *places) settle(s *Socket, state stayState) {
	switch s.state {
	case silent:
		p.silent.remove(s)
	case spoken:
		p.spoken--
	case busy:
		p.busy.remove(s)
	}
	s.state = state
	p.discount(s)
	select {
	case p.room <- struct{}{}:
	default: // another goroutine looks already
	}
}

// discount takes a socket from what its network has. Under mu.
func (p *places) discount(s *Socket) {
	if p.from[s.network]--; p.from[s.network] == 0 {
		delete(p.from, s.network)
	}
}

// introduce has a socket count as its client's from now on; false says that there are too many of that one's.
func (p *places) introduce(s *Socket, client netip.AddrPort) bool {
	trusted := p.cfg.Trusted(client.Addr())
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.state != silent {
		return true // it has lost its place, and hears of it
	}
	p.discount(s)
	s.from, s.client, s.introduced = client.Addr(), client, true
	s.counts(trusted)
	p.from[s.network]++
	return trusted || p.from[s.network] <= p.cfg.MaxPendingPerAddress
}

// spare is the socket that makes room for another, if one does. Under mu.
func (p *places) spare(now time.Time) *Socket {
	if s := p.asking.first; p.idle.n == 0 && s != nil && now.Sub(s.since) >= longestRequest {
		return s
	}
	return p.idle.first
}

// follow notes what the server of a socket says of it. One that is hijacked is looked after by what it is now.
func (p *places) follow(s *Socket, now http.ConnState, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.watched = true
	switch {
	case s.state < through: // its request is not there, or it is closed
	case now == http.StateActive:
		p.shift(s, asking, at)
	case now == http.StateIdle:
		p.shift(s, idle, at)
	default:
		p.shift(s, through, at)
	}
}

// shift takes a socket whose request is there to another state. Under mu.
func (p *places) shift(s *Socket, state stayState, at time.Time) {
	switch s.state {
	case idle:
		p.idle.remove(s)
	case asking:
		p.asking.remove(s)
		p.discount(s)
	}
	switch s.state = state; state {
	case idle:
		p.idle.add(s, at)
	case asking:
		p.asking.add(s, at)
		p.from[s.network]++ // else the requests of one network that never end would take all places, half a minute each
	}
}

// through frees the place of a socket whose request is there, and tells what it was.
func (p *places) through(s *Socket, now time.Time) (was stayState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if was = s.state; was == busy {
		p.settle(s, through)
		if s.watched {
			p.shift(s, asking, now)
		}
	}
	return was
}

// left notes that a socket is closed, and tells what it was.
func (p *places) left(s *Socket) (was stayState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch was = s.state; was {
	case away:
	case through, idle, asking:
		p.shift(s, away, time.Time{})
		p.open--
	default:
		p.settle(s, away)
		p.open--
	}
	return was
}
