package netcheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/tcpinfo"
	"github.com/leeway-video/leeway/internal/wsconn"
)

const (
	beat       = 100 * time.Millisecond
	probeEvery = 250 * time.Millisecond
	probesMost = 4 // at a time
	// Sizes of messages that are sent (spec/probe.md, ndt7).
	firstMessage   = 8 << 10
	largestMessage = 1 << 20
	scaling        = 16
	maxReport      = 64 << 10
	// closeTryAgain is how a server closes when an address has used up its day.
	closeTryAgain = 1013
	// bytesAfter is when to come back then, s: a part of the day's bytes is there again.
	bytesAfter = "3600"
)

var errSpent = errors.New("this address has used up the bytes that it may have in a day")

// load is a TCP test: parallel connections one way.
type load struct {
	*check
	direction netstat.Direction
	start     time.Time
	heard     atomic.Int64 // when something last came, ns since start
	bytes     atomic.Int64 // that came here, of a download
	spent     atomic.Bool  // the server has closed as this address has no more bytes

	mu       sync.Mutex
	v6       bool                // guarded by mu
	looks    [][]netstat.TCPInfo // guarded by mu, by connection
	uploaded []received          // guarded by mu, likewise
	probes   netstat.Probes      // guarded by mu
}

func (c *check) down(ctx context.Context, r *Results) error { return c.load(ctx, netstat.Down, r) }
func (c *check) up(ctx context.Context, r *Results) error   { return c.load(ctx, netstat.Up, r) }

// load runs a TCP test and adds its figures.
func (c *check) load(ctx context.Context, d netstat.Direction, r *Results) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := &load{check: c, direction: d}
	sockets, err := l.open(ctx)
	if err != nil {
		return err
	}
	l.start = time.Now()
	l.looks, l.uploaded = make([][]netstat.TCPInfo, len(sockets)), make([]received, len(sockets))
	stop := context.AfterFunc(ctx, func() {
		for _, s := range sockets {
			s.Close(true)
		}
	})
	defer stop()
	var work sync.WaitGroup
	var ended atomic.Int32
	for i, s := range sockets {
		if mark := c.mark(); d == netstat.Up && mark != nil {
			_ = tcpinfo.Mark(s.Conn(), c.DSCP[0]) // a system that cannot sends without
		}
		_ = s.SetDeadline(l.start.Add(c.Duration + patience))
		work.Go(func() {
			l.read(i, s)
			ended.Add(1)
			l.mu.Lock()
			l.uploaded[i].ended = true
			l.mu.Unlock()
		})
		if d == netstat.Up {
			work.Go(func() { l.send(s) })
		}
	}
	received, err := l.watch(ctx, func() bool { return int(ended.Load()) == len(sockets) })
	cancel(errQuiet) // whatever still runs
	work.Wait()
	if err == nil {
		err = l.figures(received, r)
	}
	if errors.Is(err, errQuiet) && l.spent.Load() {
		return &Error{Code: Refused, Status: http.StatusTooManyRequests, RetryAfter: bytesAfter, Err: errSpent}
	}
	return err
}

// open makes the connections. Those that are refused because of their number are done without.
func (l *load) open(ctx context.Context) (sockets []*wsconn.Bulk, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*patience, errSilent)
	defer cancel()
	path := "/ndt/v7/download"
	if l.direction == netstat.Up {
		path = "/ndt/v7/upload"
	}
	var mu sync.Mutex
	var work sync.WaitGroup
	for range l.Streams {
		work.Go(func() {
			s, e := l.server.socket(ctx, path, l.mark()...)
			mu.Lock()
			defer mu.Unlock()
			if e != nil {
				err = e
				return
			}
			sockets = append(sockets, s)
		})
	}
	work.Wait()
	var refused *wsconn.RefusedError
	if err == nil || len(sockets) > 0 && errors.As(err, &refused) {
		return sockets, nil
	}
	for _, s := range sockets {
		s.Close(true)
	}
	return nil, err
}

// mark is the query for a check of one class, whose downloads are marked, too.
func (c *check) mark() []string {
	if len(c.DSCP) != 1 {
		return nil
	}
	return []string{"dscp", fmt.Sprint(c.DSCP[0])}
}

// quiet is the silence that ends a test by TCP when its time is over. In an upload it also ends the wait for a connection.
func (c *check) quiet() time.Duration { return max(time.Second, c.Duration/4) }

// note says that something came.
func (l *load) note() { l.heard.Store(int64(time.Since(l.start))) }

// read takes what comes on a connection until it ends.
func (l *load) read(i int, s *wsconn.Bulk) {
	if at, ok := s.Conn().RemoteAddr().(*net.TCPAddr); ok {
		l.mu.Lock()
		l.v6 = at.IP.To4() == nil
		l.mu.Unlock()
	}
	buffer := make([]byte, 64<<10)
	for {
		binary, err := s.Next()
		if err != nil {
			l.spent.CompareAndSwap(false, s.Code() == closeTryAgain)
			return
		}
		if binary {
			for err == nil {
				var n int
				n, err = s.Read(buffer)
				l.bytes.Add(int64(n))
				l.note()
			}
			if !errors.Is(err, io.EOF) {
				return
			}
			continue
		}
		n, err := io.ReadFull(s, buffer[:maxReport])
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			return
		}
		l.note()
		l.measured(i, buffer[:n])
	}
}

// measured takes in a measurement of the server's.
func (l *load) measured(i int, text []byte) {
	var m struct {
		AppInfo struct{ ElapsedTime, NumBytes int64 }
		TCPInfo *netstat.TCPInfo
	}
	if json.Unmarshal(text, &m) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s, c := l.uploaded[i].series, netstat.Count{Elapsed: m.AppInfo.ElapsedTime, Bytes: m.AppInfo.NumBytes}
	if len(s) == 0 {
		s = series{{}}
	}
	if last := s[len(s)-1]; c.Elapsed > last.Elapsed && c.Bytes >= last.Bytes {
		s = append(s, c)
	}
	l.uploaded[i].series, l.uploaded[i].heard = s, time.Since(l.start)
	if m.TCPInfo != nil {
		l.looks[i] = append(l.looks[i], *m.TCPInfo)
	}
}

// send uploads until the time is over or the connection ends.
func (l *load) send(s *wsconn.Bulk) {
	data := make([]byte, 2*largestMessage) // windows of it repeat after a MiB only, so that nothing on the way can make them smaller
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	size := firstMessage
	for sent := int64(0); time.Since(l.start) < l.Duration; {
		from := sent % largestMessage
		if s.Send(true, data[from:from+int64(size)]) != nil {
			return
		}
		if sent += int64(size); size < largestMessage && int64(size) <= sent/scaling {
			size *= 2
		}
	}
}

// received is what came so far, over all connections. One that has been silent for too long keeps what it had: the others go on.
func (l *load) received(now time.Duration) []netstat.Count {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.uploaded)
	for i := range all {
		all[i].ended = all[i].ended || now-all[i].heard >= l.quiet()
	}
	return together(all)
}

// watch looks on until the time is over, and returns what was received. Probes go out once the ramp-up is over.
func (l *load) watch(ctx context.Context, ended func() bool) (received []netstat.Count, err error) {
	probes := &prober{load: l, places: make(chan struct{}, probesMost)}
	defer probes.end()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	next := l.Duration / rampUpShare
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		now := time.Since(l.start)
		if l.direction == netstat.Down {
			received = append(received, netstat.Count{Elapsed: now.Microseconds(), Bytes: l.bytes.Load()})
		} else {
			received = l.received(now)
		}
		silent := now - time.Duration(l.heard.Load())
		over := now >= l.Duration
		switch {
		case silent >= patience, over && silent >= l.quiet(), ended() && now < l.Duration*9/10:
			return nil, errQuiet
		case over:
			return received, nil
		case ended():
			continue // the server was first
		}
		if now >= next {
			probes.ask(ctx)
			next = now + probeEvery
		}
		l.Progress(Progress{Phase: l.phase, Elapsed: now, Throughput: lately(received)})
	}
}

// lately is the throughput of about the last second, bit/s.
func lately(received []netstat.Count) float64 {
	if len(received) == 0 {
		return 0
	}
	last := received[len(received)-1]
	from := len(received) - 1
	for from > 0 && received[from].Elapsed > last.Elapsed-1_000_000 {
		from--
	}
	return netstat.Rate(last.Bytes-received[from].Bytes, last.Elapsed-received[from].Elapsed)
}

// figures adds those of the test.
func (l *load) figures(received []netstat.Count, r *Results) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	rampUp := (l.Duration / rampUpShare).Microseconds()
	all := netstat.TCPTest{Direction: l.direction, V6: l.v6, RampUp: rampUp, Received: received, Looks: l.looks}.Figures()
	if len(all) == 0 || all[0].Name != netstat.Throughput.Name || all[0].Value <= 0 {
		return errQuiet
	}
	for _, looks := range l.looks {
		for _, i := range looks {
			rtt := i.RTT
			if l.direction == netstat.Up {
				rtt = i.RcvRTT
			}
			if i.ElapsedTime >= rampUp && rtt > 0 {
				l.probes.Loaded = append(l.probes.Loaded, rtt)
			}
		}
	}
	if rpm, ok := l.probes.RPM(); ok {
		all = append(all, netstat.Responsiveness.Of(l.direction, rpm))
	}
	r.Figures = append(r.Figures, all...)
	return nil
}

// prober asks for small answers on connections of their own while a load runs.
type prober struct {
	load   *load
	places chan struct{}
	work   sync.WaitGroup
}

func (p *prober) ask(ctx context.Context) {
	select {
	case p.places <- struct{}{}:
	default:
		return // as many are on their way as may be
	}
	p.work.Go(func() {
		defer func() { <-p.places }()
		ctx, cancel := context.WithTimeoutCause(ctx, 2*patience, errSilent)
		defer cancel()
		t, err := p.load.server.small(ctx, "close", "1")
		if err != nil || t.tcp == 0 {
			return // what is not answered in time has no time
		}
		p.load.mu.Lock()
		defer p.load.mu.Unlock()
		all := &p.load.probes
		all.TCP, all.HTTP = append(all.TCP, t.tcp), append(all.HTTP, t.http)
		if t.tls > 0 {
			all.TLS = append(all.TLS, t.tls)
		}
	})
}

// end waits for what is on its way.
func (p *prober) end() { p.work.Wait() }
