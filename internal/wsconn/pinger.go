package wsconn

import (
	"sync"
	"time"
)

// pinger looks after all connections of an endpoint: pings, silence, stuck writes. It is one goroutine for all, while there
// are any. A timer and deadlines for each would cost memory while a connection is silent, and system calls while it is not.
type pinger struct {
	e    *Endpoint
	open sync.WaitGroup // connections, and the goroutine

	mu    sync.Mutex
	conns []*Conn       // guarded by mu
	stop  chan struct{} // guarded by mu: of the goroutine that runs, if one does
}

// looks is how often the pinger looks in the shortest of its times.
const looks = 16

func (p *pinger) add(c *Conn, now int64) {
	p.open.Add(1)
	c.pingDue = now + int64(p.e.cfg.PingEvery)
	p.mu.Lock()
	defer p.mu.Unlock()
	c.at = len(p.conns)
	p.conns = append(p.conns, c)
	if p.stop == nil {
		p.stop = make(chan struct{})
		p.open.Add(1)
		p.e.workers.open()
		go p.run(p.stop)
	}
}

func (p *pinger) remove(c *Conn) {
	defer p.open.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.conns[len(p.conns)-1]
	p.conns[c.at], last.at = last, c.at
	p.conns[len(p.conns)-1] = nil
	p.conns = p.conns[:len(p.conns)-1]
	if len(p.conns) == 0 {
		p.conns = nil
		close(p.stop)
		p.stop = nil
		p.e.workers.shut()
	}
}

func (p *pinger) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.net.Close()
	}
}

func (p *pinger) run(stop chan struct{}) {
	defer p.open.Done()
	cfg := &p.e.cfg
	tick := time.NewTicker(max(time.Millisecond, min(cfg.PingEvery, cfg.PongTimeout, cfg.WriteTimeout)/looks))
	defer tick.Stop()
	var due []*Conn
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			due = p.look(steady(), due[:0])
			p.e.workers.trim()
		}
	}
}

// look does what is due. The list is not held while pings are queued.
func (p *pinger) look(now int64, due []*Conn) []*Conn {
	cfg := &p.e.cfg
	p.mu.Lock()
	for _, c := range p.conns {
		if now >= c.pingDue {
			c.pingDue = now + int64(cfg.PingEvery)
			due = append(due, c)
		}
		if c.overdue(now, cfg.WriteTimeout) {
			_ = c.net.Close()
		}
		if c.silent(now, cfg.PongTimeout) && !c.closed.Load() {
			_ = c.net.SetReadDeadline(time.Unix(1, 0)) // the goroutine that reads or waits returns at once
		}
	}
	p.mu.Unlock()
	for i, c := range due {
		c.ping(now)
		due[i] = nil
	}
	return due
}
