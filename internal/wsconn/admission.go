package wsconn

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"github.com/leeway-video/leeway/internal/sleep"
)

// AdmissionConfig bounds what comes in before anything is spent on it but a file. Zero values take the defaults named.
type AdmissionConfig struct {
	MaxOpen              int                   // connections; 65,536
	MaxPending           int                   // of them whose first request is not there yet; 4,096
	MaxPendingPerAddress int                   // of those and of those whose request is being answered, from one address; a quarter of MaxPending
	MaxBusy              int                   // of those, that have begun to say something; 1,024
	PerSecond            int                   // of those that speak, that begin; 2,000 for each processor
	Patience             time.Duration         // that one of them has when others want its place; 5 s
	Silence              time.Duration         // after which one that says nothing is given up; 10 s
	Trusted              func(netip.Addr) bool // says of a proxy that it is one: many stand behind its address
	Introduces           func(netip.Addr) bool // says of a balancer that each connection of its begins with a PROXY header, which says whose it is
	Refused              func(reason string)   // counts: total, half-open, rate, proxy
	Knock                func(netip.Addr) bool // takes a place of an address's budget before its handshake; false refuses it
	Entered              func(netip.Addr)      // may give it back: the request is there, and counts as what it is
	Slack                int                   // bytes; see UsualSlack
}

func (c *AdmissionConfig) complete() {
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

// Admission is a listener that admits. A connection is silent until its first byte has come, and holds nothing but a small
// goroutine; then it waits for its turn; then it is busy until the head of its first request has been read, which the server
// says by Context and Guard; and then admission has no further say, except that by State it finds one that makes room for another.
// What is refused is reset at once. Handshakes begin at a pace that leaves a processor time for the sessions that are open: a
// thousand at once would each be short, and hold up everything else for as long as all of them take.
type Admission struct {
	net.Listener
	cfg    AdmissionConfig
	places *places
	in     chan *Socket // what Accept returns
	err    error        // of the listener; fixed once quit is closed
	quit   chan struct{}
	once   sync.Once
	done   chan struct{} // nothing comes in any more
	wg     sync.WaitGroup

	handshakes *handshakeLimiter
	slack      []byte        // never touched
	starts     *rate.Limiter // of handshakes; only Accept
	steps      *rate.Limiter // of what the system hands over; only admit
}

// UsualSlack is by how much longer the collector leaves a process alone. A heap of a few megabytes is full of what handshakes
// leave behind many times a second, and on one processor the collector keeps messages waiting. The system has no memory for
// what is never touched: it is a number that the collector counts.
const UsualSlack = 32 << 20

const (
	// atOnce is how many connections or handshakes may follow each other without a pause.
	atOnce = 16
	// stepsEach is how many connections are looked at for each handshake that may begin: most of a flood are none.
	stepsEach = 5
)

// NewAdmission puts admission before a listener of TCP. TLS goes above it.
func NewAdmission(l net.Listener, cfg AdmissionConfig) *Admission {
	cfg.complete()
	d := &Admission{
		Listener: l, cfg: cfg, in: make(chan *Socket), quit: make(chan struct{}), done: make(chan struct{}),
		handshakes: newHandshakeLimiter(), slack: make([]byte, cfg.Slack),
	}
	d.places = newPlaces(&d.cfg)
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
func (d *Admission) Accept() (net.Conn, error) {
	for {
		select {
		case s := <-d.in:
			if d.rest(d.starts) && d.begin(s) {
				return s, nil
			}
			_ = s.Close()
		case <-d.quit:
			return nil, cmp.Or(d.err, net.ErrClosed)
		}
	}
}

// Close implements net.Listener. Nothing of it runs any more when it returns.
func (d *Admission) Close() error {
	err := d.Listener.Close()
	d.stop(nil)
	<-d.done
	for s := d.places.oldest(); s != nil; s = d.places.oldest() {
		_ = s.Close()
	}
	d.wg.Wait()
	d.handshakes.close()
	return err
}

func (d *Admission) stop(err error) {
	d.once.Do(func() {
		d.err = err
		close(d.quit)
	})
}

// admit takes connections from the system.
func (d *Admission) admit() {
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
			d.stop(errors.New("wsconn: admission takes connections of TCP only"))
			_ = conn.Close()
			return
		}
		if !d.take(&Socket{TCPConn: tcp, admission: d}) || !d.rest(d.steps) {
			return
		}
		d.handshakes.yield()
	}
}

// take decides about a connection; false says that it is closed.
func (d *Admission) take(s *Socket) bool {
	if a, ok := s.RemoteAddr().(*net.TCPAddr); ok {
		s.from = a.AddrPort().Addr().Unmap()
	}
	s.introduced = !d.cfg.Introduces(s.from)
	s.counts(!s.introduced || d.cfg.Trusted(s.from))
	for {
		reason, evicted, wait := d.places.enter(s, time.Now())
		d.evict(evicted)
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

// rest keeps to a pace; false says that it is closed.
func (d *Admission) rest(pace *rate.Limiter) bool {
	wait := pace.Reserve().Delay()
	return wait == 0 || sleep.Until(d.quit, wait)
}

// pause waits for room, for some time; false says that it is closed.
func (d *Admission) pause(most time.Duration) bool {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-d.places.room:
	case <-t.C:
	case <-d.quit:
		return false
	}
	return true
}

// begin lets a socket go on that has begun to speak, once there are few enough of those; false says that it is closed.
func (d *Admission) begin(s *Socket) bool {
	for {
		gone, evicted, wait := d.places.begin(s, time.Now())
		d.evict(evicted)
		if wait <= 0 || gone {
			return !gone
		}
		if !d.pause(wait) {
			return false
		}
	}
}

// evict ends a socket that has lost its place, if there is one.
func (d *Admission) evict(s *Socket) {
	if s == nil {
		return
	}
	reason := "half-open"
	if s.inside.Load() { // its request was there
		reason = "total"
	}
	s.reset()
	d.cfg.Refused(reason)
}
