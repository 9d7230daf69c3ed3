// Package loadgen is many scripted tracker sessions in one process, without WebRTC: what a tracker sees of a large audience.
//
// A session is a socket and one goroutine that reads it; its script (WebTorrent, Native) says what is said when something
// comes. Descriptions of sessions are made up. Everything on the wire is real: TLS, handshakes, masked frames, and addresses
// of the loopback network, as many as the tracker's limits of one address ask for.
package loadgen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/sleep"
)

// Protocol is what sessions speak.
type Protocol string

// The protocols.
const (
	WebTorrent Protocol = "webtorrent"
	Native     Protocol = "leeway.v1"
)

// Config of a driver.
type Config struct {
	Protocol Protocol
	Address  netip.AddrPort // of the tracker
	Path     string         // of the handshake, with its query
	TLS      *tls.Config    // nil: plaintext
	Sources  []netip.Addr   // that sessions come from, in turn; none: as the system likes
	Site     string         // that native sessions name
	Sessions int
	First    int // number of the first session, where several processes share a swarm
	Swarms   int // that sessions are spread over
	Offers   int // with each announce or join
	Opening  int // handshakes under way at a time; 64
	Retries  int // of a session that is not let in, each after a time as a client's
}

// mode says what sessions do by themselves.
type mode int32

const (
	quiet  mode = iota // they answer, and say nothing of their own
	closed             // each announces itself again as soon as its last announce was answered
)

// Driver is open sessions.
type Driver struct {
	cfg      Config
	sessions []*session
	mode     atomic.Int32
	counts   counts
	wg       sync.WaitGroup

	mu   sync.Mutex
	lost error // guarded by mu: why the first session ended that was not closed by us
	down bool  // guarded by mu
}

// counts are what came, of all sessions.
type counts struct {
	announced, acks, offered, answered, failures, other, retried atomic.Int64
	latency                                                      histogram
}

// Result is what came in a time.
type Result struct {
	Seconds   float64
	Announced int64 // announces or joins sent
	Acks      int64
	Offered   int64 // offers that came
	Answered  int64 // answers that came
	Failures  int64
	Other     int64 // introductions and the like
	// Of an announce or join until its ack, or the end.
	P50, P99 time.Duration
}

// Responses is how many messages the tracker sent, refusals left out.
func (r Result) Responses() int64 { return r.Acks + r.Offered + r.Answered + r.Other }

// retryUnit is what a client's first pause is drawn from; each further one has twice the room.
const retryUnit = 500 * time.Millisecond

// Retried is how often a session that was not let in came back.
func (d *Driver) Retried() int64 { return d.counts.retried.Load() }

// Open connects all sessions and has each join its swarm once, without offers. It returns when the last has its ack.
func Open(ctx context.Context, cfg Config) (*Driver, error) {
	if cfg.Opening == 0 {
		cfg.Opening = 64
	}
	if cfg.Sessions < 1 || cfg.Swarms < 1 || cfg.Protocol != WebTorrent && cfg.Protocol != Native {
		return nil, fmt.Errorf("load: %d sessions in %d swarms of protocol %q; at least one of each, webtorrent or leeway.v1", cfg.Sessions, cfg.Swarms, cfg.Protocol)
	}
	d := &Driver{cfg: cfg, sessions: make([]*session, cfg.Sessions)}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var opening sync.WaitGroup
	next := atomic.Int64{}
	for range min(cfg.Opening, cfg.Sessions) {
		opening.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= cfg.Sessions || ctx.Err() != nil {
					return
				}
				s, err := d.open(ctx, i)
				for n := 0; err != nil && n < cfg.Retries && sleep.For(ctx, rand.N(retryUnit<<min(n, 6))); n++ {
					d.counts.retried.Add(1)
					s, err = d.open(ctx, i)
				}
				if err != nil {
					cancel(fmt.Errorf("load: session %d: %w", cfg.First+i, err))
					return
				}
				d.sessions[i] = s
			}
		})
	}
	opening.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// open connects one session and starts its goroutine.
func (d *Driver) open(ctx context.Context, i int) (*session, error) {
	var from netip.Addr
	if n := len(d.cfg.Sources); n > 0 {
		from = d.cfg.Sources[i%n]
	}
	ws, err := dial(ctx, d.cfg, from)
	if err != nil {
		return nil, err
	}
	s := &session{d: d, ws: ws, number: d.cfg.First + i}
	if d.cfg.Protocol == WebTorrent {
		s.script = newTorrentScript(s)
	} else {
		s.script = newNativeScript(s)
	}
	if err := s.begin(ctx); err != nil {
		_ = ws.conn.Close()
		return nil, err
	}
	d.wg.Go(s.read)
	return s, nil
}

// Saturate has every session announce itself as often as the tracker answers, for warm without counting and then for long.
// counting, if there is one, is called when counting begins.
func (d *Driver) Saturate(ctx context.Context, warm, long time.Duration, counting func()) (Result, error) {
	d.mode.Store(int32(closed))
	for _, s := range d.sessions {
		s.announce()
	}
	r, err := d.measure(ctx, warm, long, counting)
	d.mode.Store(int32(quiet))
	return r, err
}

// Pace has sessions announce themselves in turn, so many a second together, for long, and a tenth of that before
// counting.
func (d *Driver) Pace(ctx context.Context, perSecond int, long time.Duration, counting func()) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	paced := make(chan struct{})
	go func() {
		defer close(paced)
		const step = 2 * time.Millisecond
		tick := time.NewTicker(step)
		defer tick.Stop()
		began, sent := time.Now(), 0
		for ctx.Err() == nil {
			for due := int(time.Since(began).Seconds() * float64(perSecond)); sent < due; sent++ {
				d.sessions[sent%len(d.sessions)].announce()
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	r, err := d.measure(ctx, long/10, long, counting)
	cancel()
	<-paced
	return r, err
}

// Quiet waits until nothing comes any more.
func (d *Driver) Quiet(ctx context.Context) error {
	for last := int64(-1); ; {
		r := d.counts.read()
		if n := r.Responses(); n == last {
			return d.Lost()
		} else {
			last = n
		}
		if !sleep.For(ctx, 250*time.Millisecond) {
			return ctx.Err()
		}
	}
}

func (d *Driver) measure(ctx context.Context, warm, long time.Duration, counting func()) (Result, error) {
	if !sleep.For(ctx, warm) {
		return Result{}, ctx.Err()
	}
	before, began := d.counts.read(), time.Now()
	d.counts.latency.reset()
	if counting != nil {
		counting()
	}
	if !sleep.For(ctx, long) {
		return Result{}, ctx.Err()
	}
	r := d.counts.read()
	r.Seconds = time.Since(began).Seconds()
	for _, s := range d.sessions {
		if sent := s.sent.Load(); sent != 0 { // there is no answer yet: it takes so long at least
			d.counts.latency.add(time.Since(time.Unix(0, sent)))
		}
	}
	r.P50, r.P99 = d.counts.latency.quantile(0.5), d.counts.latency.quantile(0.99)
	r.Announced -= before.Announced
	r.Acks -= before.Acks
	r.Offered -= before.Offered
	r.Answered -= before.Answered
	r.Failures -= before.Failures
	r.Other -= before.Other
	return r, d.Lost()
}

func (c *counts) read() Result {
	return Result{
		Announced: c.announced.Load(), Acks: c.acks.Load(), Offered: c.offered.Load(), Answered: c.answered.Load(),
		Failures: c.failures.Load(), Other: c.other.Load(),
	}
}

// Lost says why the first session ended that was not closed by us, or nil.
func (d *Driver) Lost() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost
}

func (d *Driver) lose(number int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost == nil && !d.down {
		d.lost = fmt.Errorf("load: session %d: %w", number, err)
	}
}

// Close ends all sessions; when it returns, nothing of the driver runs any more.
func (d *Driver) Close() error {
	d.mu.Lock()
	d.down = true
	d.mu.Unlock()
	for _, s := range d.sessions {
		if s != nil {
			_ = s.ws.conn.Close()
		}
	}
	d.wg.Wait()
	return nil
}
