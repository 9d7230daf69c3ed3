package wsconn

import (
	"sync"
	"time"
)

// keeper looks after all connections of an endpoint: pings, silence, writes that are stuck. One goroutine does, while there
// are any: timers and deadlines of each would cost memory while they say nothing and system calls while they talk.
type keeper struct {
	e    *Endpoint
	open sync.WaitGroup // connections, and the goroutine

	mu    sync.Mutex
	conns []*Conn       // guarded by mu
	stop  chan struct{} // guarded by mu: of the goroutine that runs, if one does
}

// looks is how often the keeper looks in the shortest of its times.
const looks = 16

func (k *keeper) add(c *Conn, now int64) {
	k.open.Add(1)
	c.pingDue = now + int64(k.e.cfg.PingEvery)
	k.mu.Lock()
	defer k.mu.Unlock()
	c.at = len(k.conns)
	k.conns = append(k.conns, c)
	if k.stop == nil {
		k.stop = make(chan struct{})
		k.open.Add(1)
		k.e.workers.open()
		go k.keep(k.stop)
	}
}

func (k *keeper) remove(c *Conn) {
	defer k.open.Done()
	k.mu.Lock()
	defer k.mu.Unlock()
	last := k.conns[len(k.conns)-1]
	k.conns[c.at], last.at = last, c.at
	k.conns[len(k.conns)-1] = nil
	k.conns = k.conns[:len(k.conns)-1]
	if len(k.conns) == 0 {
		k.conns = nil
		close(k.stop)
		k.stop = nil
		k.e.workers.shut()
	}
}

func (k *keeper) keep(stop chan struct{}) {
	defer k.open.Done()
	cfg := &k.e.cfg
	tick := time.NewTicker(max(time.Millisecond, min(cfg.PingEvery, cfg.PongTimeout, cfg.WriteTimeout)/looks))
	defer tick.Stop()
	var due []*Conn
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			due = k.look(time.Now().UnixNano(), due[:0])
			k.e.workers.trim()
		}
	}
}

// look does what is due. The list is not held while pings are queued.
func (k *keeper) look(now int64, due []*Conn) []*Conn {
	cfg := &k.e.cfg
	k.mu.Lock()
	for _, c := range k.conns {
		if now >= c.pingDue {
			c.pingDue = now + int64(cfg.PingEvery)
			due = append(due, c)
		}
		if c.overdue(now, cfg.WriteTimeout) {
			_ = c.net.Close()
		}
		if c.silent(now, cfg.PongTimeout) && !c.over.Load() {
			_ = c.net.SetReadDeadline(time.Unix(1, 0)) // whoever reads or waits comes back at once
		}
	}
	k.mu.Unlock()
	for i, c := range due {
		c.ping(now)
		due[i] = nil
	}
	return due
}
