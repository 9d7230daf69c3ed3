package netcheck

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/wsconn"
)

// A test of responsiveness under working conditions (spec/probe.md, Responsiveness with requests on the load).
const (
	respondEvery = time.Second            // an interval of it
	pairEvery    = 100 * time.Millisecond // between two pairs of probes, where the line is fast enough
	pairBytes    = 6000                   // what a pair takes of the line, about
	pairShare    = 20                     // one in so many bytes may be theirs
	pairsMost    = 16                     // of each kind, at a time
)

// responding is a test of responsiveness, one way.
type responding struct {
	*check
	direction netstat.Direction
	start     time.Time
	moved     atomic.Int64 // bytes of the load
	foreign   chan struct{}
	own       chan struct{}
	work      sync.WaitGroup
	added     int // connections of the load that watch has begun, also those that carry none yet

	mu     sync.Mutex
	loads  []*http.Client // guarded by mu: each has one connection, which carries load
	full   bool           // guarded by mu: the server takes no more
	failed error          // guarded by mu: why the first connection that ended has ended
	probes []probed       // guarded by mu
}

// probed is a probe that has been answered: foreign, or on a loaded connection.
type probed struct {
	at     time.Time // when its answer was there
	timed  timed
	loaded bool
}

// responsiveness measures both ways.
func (c *check) responsiveness(ctx context.Context, r *Results) error {
	for _, d := range []netstat.Direction{netstat.Down, netstat.Up} {
		rpm, sure, err := c.responds(ctx, d)
		if err != nil {
			return err
		}
		r.Figures = append(r.Figures, netstat.RequestResponsiveness.Of(d, rpm))
		if r.Confidence == nil {
			r.Confidence = map[netstat.Direction]netstat.Confidence{}
		}
		r.Confidence[d] = sure
	}
	return nil
}

// responds measures one way, until the figure has come to rest or the time is over.
func (c *check) responds(ctx context.Context, d netstat.Direction) (rpm float64, sure netstat.Confidence, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &responding{check: c, direction: d, start: time.Now(), foreign: make(chan struct{}, pairsMost), own: make(chan struct{}, pairsMost)}
	rpm, sure, err = p.watch(ctx)
	cancel(errQuiet) // whatever still runs
	p.work.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.loads {
		l.CloseIdleConnections()
	}
	return rpm, sure, err
}

// watch adds connections and probes, and looks on.
func (p *responding) watch(ctx context.Context) (rpm float64, sure netstat.Confidence, err error) {
	var bytes []int64                 // moved by the end of each interval
	var goodputs, responses []float64 // by interval
	heard, had := p.start, int64(0)
	nextPair, second := p.start, false
	pair := pairEvery
	saturated := false // the goodput has come to rest
	p.add(ctx)
	tick := time.NewTicker(pairEvery / 10)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, "", context.Cause(ctx)
		}
		now := time.Now()
		if moved := p.moved.Load(); moved > had {
			heard, had = now, moved
		}
		if err := p.wrong(); err != nil {
			return 0, "", err
		}
		if now.Sub(heard) >= patience {
			return 0, "", errQuiet
		}
		if !now.Before(nextPair) { // the two kinds take turns
			p.probe(ctx, second)
			second = !second
			nextPair = now.Add(pair / 2)
		}
		if now.Sub(p.start) < time.Duration(len(bytes)+1)*respondEvery {
			continue
		}
		bytes = append(bytes, had)
		goodput := lastly(bytes)
		goodputs = append(goodputs, movingAverage(bytes))
		p.Progress(Progress{Phase: p.phase, Elapsed: now.Sub(p.start), Throughput: goodput})
		if goodput > 0 {
			pair = max(pairEvery, time.Duration(pairBytes*8*pairShare/goodput*float64(time.Second)))
		}
		saturated = saturated || netstat.Stable(goodputs)
		rpm, ok := p.rpm(now)
		if saturated && ok {
			responses = append(responses, rpm)
		}
		switch over := now.Sub(p.start) - 2*p.Duration; {
		case saturated && netstat.Stable(responses), over >= 0 && ok:
			return rpm, netstat.ConfidenceOf(responses), nil
		case over >= patience:
			return 0, "", errQuiet // no probe is answered
		}
		p.add(ctx)
	}
}

// movingAverage is the draft's moving average of the goodput, bit/s: of as many intervals from the first on, so that it grows until
// there were as many.
func movingAverage(bytes []int64) float64 {
	n, before := len(bytes), int64(0)
	if n > netstat.MovingAverage {
		before = bytes[n-netstat.MovingAverage-1]
	}
	return netstat.Rate(bytes[n-1]-before, netstat.MovingAverage*respondEvery.Microseconds())
}

// lastly is the goodput of the last intervals that there were, bit/s.
func lastly(bytes []int64) float64 {
	n := min(len(bytes), netstat.MovingAverage)
	before := int64(0)
	if len(bytes) > n {
		before = bytes[len(bytes)-n-1]
	}
	return netstat.Rate(bytes[len(bytes)-1]-before, int64(n)*respondEvery.Microseconds())
}

// wrong is why a connection of the load has ended.
func (p *responding) wrong() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// rpm is the responsiveness of the probes that were answered within the last intervals.
func (p *responding) rpm(now time.Time) (float64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all netstat.Probes
	for _, one := range p.probes {
		switch {
		case now.Sub(one.at) > netstat.MovingAverage*respondEvery:
		case one.loaded:
			all.Loaded = append(all.Loaded, one.timed.all)
		default:
			all.TCP, all.TLS, all.HTTP = append(all.TCP, one.timed.tcp), append(all.TLS, one.timed.tls), append(all.HTTP, one.timed.http)
		}
	}
	return all.RPM()
}

// probe sends one: on a connection of its own, or on a loaded one that is drawn.
func (p *responding) probe(ctx context.Context, loaded bool) {
	p.mu.Lock()
	n := len(p.loads)
	var on *http.Client
	if loaded && n > 0 {
		on = p.loads[rand.IntN(n)]
	}
	p.mu.Unlock()
	places := p.foreign
	if loaded {
		places = p.own
	}
	if n == 0 {
		return // nothing is loaded
	}
	select {
	case places <- struct{}{}:
	default:
		return // as many are on their way as may be
	}
	p.work.Go(func() {
		defer func() { <-places }()
		ctx, cancel := context.WithTimeoutCause(ctx, 2*patience, errSilent)
		defer cancel()
		var t timed
		var err error
		if loaded {
			t, err = p.server.smallBy(ctx, on)
		} else {
			t, err = p.server.small(ctx, "close", "1")
		}
		if err != nil || loaded != (t.tcp == 0) {
			return // not answered in time, or on a connection that is not meant
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.probes = append(p.probes, probed{at: time.Now(), timed: t, loaded: loaded})
	})
}

// add adds a connection to the load, unless there are enough.
func (p *responding) add(ctx context.Context) {
	p.mu.Lock()
	full := p.full
	p.mu.Unlock()
	if p.added >= p.Streams || full {
		return
	}
	p.added++
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	var config *tls.Config
	if p.server.tls != nil {
		config = p.server.tls.Clone()
	}
	// One connection: a second one would carry probes apart from the load.
	client := &http.Client{Transport: &http.Transport{DialContext: p.server.dial, TLSClientConfig: config, TLSHandshakeTimeout: 2 * patience, Protocols: protocols, MaxConnsPerHost: 1}}
	p.work.Go(func() {
		for ctx.Err() == nil {
			if err := p.transfer(ctx, client); err != nil && ctx.Err() == nil {
				p.ended(err)
				break
			}
		}
		client.CloseIdleConnections()
	})
}

// ended takes in that a connection has: the test goes on if it was refused and there are others, as then there are as many as may be.
func (p *responding) ended(err error) {
	var refused *wsconn.RefusedError
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.As(err, &refused) && refused.Status == http.StatusTooManyRequests && len(p.loads) > 0 {
		p.full = true
	} else if p.failed == nil {
		p.failed = err
	}
}

// transfer loads a connection with one request. The server ends each within its time, and another one follows.
func (p *responding) transfer(ctx context.Context, client *http.Client) error {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() {
		if p.direction == netstat.Up {
			p.loaded(client)
		}
	}})
	method, path, body := http.MethodGet, "/probe/v1/download", io.Reader(nil)
	if p.direction == netstat.Up {
		method, path, body = http.MethodPost, "/probe/v1/upload", &counted{Reader: &endless{until: time.Now().Add(MaxDuration)}, moved: &p.moved}
	}
	r, err := p.server.request(ctx, method, p.server.url(path), body)
	if err != nil {
		return err
	}
	response, err := doBy(client, r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.ProtoMajor != 2 {
		return &Error{Code: Refused, Err: fmt.Errorf("the server speaks %s, and no HTTP/2", response.Proto)}
	}
	if p.direction == netstat.Up {
		_, err = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer))
		return err
	}
	p.loaded(client)
	_, err = io.Copy(io.Discard, &counted{Reader: response.Body, moved: &p.moved})
	return err
}

// loaded says that a connection carries load.
func (p *responding) loaded(client *http.Client) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.loads, client) {
		p.loads = append(p.loads, client)
	}
}

// counted counts what is read.
type counted struct {
	io.Reader
	moved *atomic.Int64
}

// Read implements io.Reader.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.moved.Add(int64(n))
	return n, err
}
