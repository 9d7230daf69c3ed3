package wsconn

import (
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"
)

// DoorConfig bounds what comes in before anything is spent on it but a file. Zero values take the defaults named.
type DoorConfig struct {
	MaxOpen              int                   // connections; 65,536
	MaxPending           int                   // of them whose first request is not there yet; 4,096
	MaxPendingPerAddress int                   // of those, from one address; a quarter of MaxPending
	MaxBusy              int                   // of those, that have begun to say something; 1,024
	PerSecond            int                   // of those that speak, that begin; 2,000 for each processor
	Patience             time.Duration         // that one of them has when others want its place; 5 s
	Silence              time.Duration         // after which one that says nothing is given up; 10 s
	Trusted              func(netip.Addr) bool // says of a proxy that it is one: many stand behind its address
	Introduces           func(netip.Addr) bool // says of a balancer that each connection of its begins with a PROXY header, which says whose it is
	Refused              func(reason string)   // counts: total, half-open, rate, proxy
	Knock                func(netip.Addr) bool // takes a place of an address's budget before its handshake; false refuses it
	Entered              func(netip.Addr)      // gives it back: the request is there, and counts as what it is
	Slack                int                   // bytes; see UsualSlack
}

func (c *DoorConfig) complete() {
	for _, n := range []struct {
		v *int
		d int
	}{{&c.MaxOpen, 65_536}, {&c.MaxPending, 4096}, {&c.MaxBusy, 1024}} {
		if *n.v == 0 {
			*n.v = n.d
		}
	}
	if c.MaxPendingPerAddress == 0 {
		c.MaxPendingPerAddress = max(1, c.MaxPending/4)
	}
	if c.PerSecond == 0 {
		c.PerSecond = 2000 * runtime.GOMAXPROCS(0)
	}
	if c.Patience == 0 {
		c.Patience = 5 * time.Second
	}
	if c.Silence == 0 {
		c.Silence = 10 * time.Second
	}
	if c.Trusted == nil {
		c.Trusted = func(netip.Addr) bool { return false }
	}
	if c.Introduces == nil {
		c.Introduces = func(netip.Addr) bool { return false }
	}
	if c.Refused == nil {
		c.Refused = func(string) {}
	}
	if c.Knock == nil {
		c.Knock = func(netip.Addr) bool { return true }
	}
	if c.Entered == nil {
		c.Entered = func(netip.Addr) {}
	}
}

// Door is a listener that admits. A connection is silent until its first byte has come, and holds nothing but a small
// goroutine; then it waits for its turn; then it is busy until the head of its first request has been read, which the server
// says by Context and Guard; and then none of the door's business. What is refused is reset at once. When all places are taken, who is silent or busy for longer
// than Patience loses it to who comes; while nobody has, who comes waits. Handshakes begin at a pace that leaves a processor time
// for those who are in: a thousand at once would each be short, and hold up everybody else for as long as all of them take.
type Door struct {
	net.Listener
	cfg  DoorConfig
	in   chan *Socket // what Accept returns
	err  error        // of the listener; read once in is closed
	quit chan struct{}
	once sync.Once
	done chan struct{} // nothing comes in any more
	room chan struct{} // a place may be free
	wg   sync.WaitGroup

	turns  *turns
	slack  []byte        // never touched
	starts *rate.Limiter // of handshakes; only Accept
	steps  *rate.Limiter // of what the system hands over; only admit

	mu     sync.Mutex
	open   int                  // guarded by mu
	silent queue                // guarded by mu
	spoken int                  // guarded by mu: that have begun to speak, and wait for their turn
	busy   queue                // guarded by mu
	from   map[netip.Prefix]int // guarded by mu: silent, spoken and busy, by network
}

// UsualSlack is by how much longer the collector leaves a process alone. A heap of a few megabytes is full of what handshakes
// leave behind many times a second, and on one processor the collector keeps messages waiting. The system has no memory for
// what nobody touches: it is a number that the collector counts.
const UsualSlack = 32 << 20

const (
	// atOnce is how many connections or handshakes may follow each other without a pause.
	atOnce = 16
	// stepsEach is how many connections are looked at for each handshake that may begin: most of a flood are none.
	stepsEach = 5
)

// NewDoor puts a door before a listener of TCP. TLS goes above it.
func NewDoor(l net.Listener, cfg DoorConfig) *Door {
	cfg.complete()
	d := &Door{
		Listener: l, cfg: cfg, in: make(chan *Socket), quit: make(chan struct{}), done: make(chan struct{}),
		room: make(chan struct{}, 1), from: map[netip.Prefix]int{}, turns: newTurns(),
		slack: make([]byte, cfg.Slack),
	}
	d.starts = rate.NewLimiter(rate.Limit(cfg.PerSecond), atOnce)
	d.steps = rate.NewLimiter(rate.Limit(stepsEach*cfg.PerSecond), atOnce)
	d.wg.Add(1)
	go func() {
		defer d.wg.Done()
		d.admit()
		close(d.done)
	}()
	return d
}

// Accept implements net.Listener.
func (d *Door) Accept() (net.Conn, error) {
	for {
		select {
		case s := <-d.in:
			if d.rest(d.starts) && d.begin(s) {
				return s, nil
			}
			_ = s.Close()
		case <-d.quit:
			return nil, d.failure()
		}
	}
}

func (d *Door) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		return net.ErrClosed
	}
	return d.err
}

// Close implements net.Listener. Nothing of the door runs any more when it returns.
func (d *Door) Close() error {
	err := d.Listener.Close()
	d.stop(nil)
	<-d.done
	for s := d.oldest(); s != nil; s = d.oldest() {
		_ = s.Close()
	}
	d.wg.Wait()
	d.turns.close()
	return err
}

func (d *Door) stop(err error) {
	d.once.Do(func() {
		d.mu.Lock()
		d.err = err
		d.mu.Unlock()
		close(d.quit)
	})
}

// oldest is the silent socket that came first.
func (d *Door) oldest() *Socket {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.silent.first
}

// admit takes connections from the system.
func (d *Door) admit() {
	for after := time.Duration(0); ; {
		conn, err := d.Listener.Accept()
		switch {
		case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED):
			// No files left: those that are there go on, and give some back.
			after = min(max(2*after, 5*time.Millisecond), time.Second)
			if d.pause(after) {
				continue
			}
			return
		case err != nil:
			d.stop(err)
			return
		}
		after = 0
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			d.stop(errors.New("wsconn: a door takes connections of TCP only"))
			_ = conn.Close()
			return
		}
		if !d.take(&Socket{TCPConn: tcp, door: d}) || !d.rest(d.steps) {
			return
		}
		d.turns.pass()
	}
}

// take decides about a connection; false says that the door is closed.
func (d *Door) take(s *Socket) bool {
	if a, ok := s.RemoteAddr().(*net.TCPAddr); ok {
		s.from = a.AddrPort().Addr().Unmap()
	}
	s.introduced = !d.cfg.Introduces(s.from)
	s.counts(!s.introduced || d.cfg.Trusted(s.from))
	for {
		reason, evicted, wait := d.enter(s, time.Now())
		if evicted != nil {
			evicted.reset()
			d.cfg.Refused("half-open")
		}
		switch {
		case wait > 0:
			if d.pause(wait) {
				continue
			}
			_ = s.TCPConn.Close()
			return false
		case reason != "":
			s.reset()
			d.cfg.Refused(reason)
			return true
		}
		d.wg.Go(s.first)
		return true
	}
}

// rest keeps to a pace; false says that the door is closed.
func (d *Door) rest(pace *rate.Limiter) bool {
	wait := pace.Reserve().Delay()
	if wait == 0 {
		return true
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-d.quit:
		return false
	}
}

// pause waits for room, for some time; false says that the door is closed.
func (d *Door) pause(most time.Duration) bool {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-d.room:
	case <-t.C:
	case <-d.quit:
		return false
	}
	return true
}

// enter finds a place for a socket. reason is empty or why it is refused, evicted has lost its place to it, and wait is how
// long until somebody may.
func (d *Door) enter(s *Socket, now time.Time) (reason string, evicted *Socket, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.open >= d.cfg.MaxOpen:
		return "total", nil, 0
	case !s.trusted && d.from[s.network] >= d.cfg.MaxPendingPerAddress:
		return "half-open", nil, 0
	case d.silent.n+d.spoken+d.busy.n >= d.cfg.MaxPending:
		if evicted, wait = d.evict(&d.silent, now); evicted == nil {
			return "", nil, wait
		}
	}
	d.open++
	d.from[s.network]++
	s.state = silent
	d.silent.add(s, now)
	return "", evicted, 0
}

// evict takes the first of a queue out, if its time is over. Under mu.
func (d *Door) evict(q *queue, now time.Time) (evicted *Socket, wait time.Duration) {
	if q.first == nil {
		return nil, d.cfg.Patience
	}
	if wait = d.cfg.Patience - now.Sub(q.first.since); wait > 0 {
		return nil, wait
	}
	evicted = q.first
	d.settle(evicted, away)
	d.open--
	return evicted, 0
}

// begin lets a socket go on that has begun to speak, once there are few enough of those; false says that the door is closed.
func (d *Door) begin(s *Socket) bool {
	for {
		now := time.Now()
		var evicted *Socket
		var wait time.Duration
		d.mu.Lock()
		if d.busy.n >= d.cfg.MaxBusy {
			evicted, wait = d.evict(&d.busy, now)
		}
		if wait <= 0 && s.state == spoken {
			d.spoken--
			s.state = busy
			d.busy.add(s, now)
		}
		gone := s.state == away
		d.mu.Unlock()
		if evicted != nil {
			evicted.reset()
			d.cfg.Refused("half-open")
		}
		if wait <= 0 || gone {
			return !gone
		}
		if !d.pause(wait) {
			return false
		}
	}
}

// speaks notes that a socket has begun to speak; false says that it has lost its place already.
func (d *Door) speaks(s *Socket) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.state != silent {
		return false
	}
	d.silent.remove(s)
	s.state = spoken
	d.spoken++
	return true
}

// settle takes a socket out of its queue. Under mu.
func (d *Door) settle(s *Socket, state stayState) {
	switch s.state {
	case silent:
		d.silent.remove(s)
	case spoken:
		d.spoken--
	case busy:
		d.busy.remove(s)
	}
	s.state = state
	d.discount(s)
	select {
	case d.room <- struct{}{}:
	default: // somebody looks already
	}
}

// discount takes a socket from what its network has. Under mu.
func (d *Door) discount(s *Socket) {
	if d.from[s.network]--; d.from[s.network] == 0 {
		delete(d.from, s.network)
	}
}
