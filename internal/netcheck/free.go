package netcheck

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/quality"
)

// A packet that a lane fills: what it has of the lane's messages, and all of it, bytes (spec/probe.md, Load that gives way).
const (
	packetPayload = 1156
	packet4       = 1253
	packet6       = 1273
)

// freeWindow is the time whose rate counts, µs.
const freeWindow = 2_000_000

// loadStream is the number of a connection's load.
const loadStream = 1

var errLane = errors.New("the server sent on channel lane what it must not")

// laneLoad is a load that gives way, as the client sees it.
type laneLoad struct {
	*stream
	receiver *background.Receiver // of a load down
	lane     *background.Lane     // of a load up; guarded by Line.mu
	came     atomic.Int64         // bytes of messages, of a load down
}

// plenty is a source that has always something.
type plenty [peer.PieceSize]byte

// Waiting implements background.Source.
func (*plenty) Waiting() bool { return true }

// Next implements background.Source.
func (p *plenty) Next(n int) (peer.Data, bool) { return peer.Data{Payload: p[:min(n, len(p))]}, true }

func (c *check) freeDown(ctx context.Context, r *Results) error { return c.free(ctx, quality.Down, r) }
func (c *check) freeUp(ctx context.Context, r *Results) error   { return c.free(ctx, quality.Up, r) }

// free measures what is free of the line one way, and adds the figure.
func (c *check) free(ctx context.Context, d quality.Direction, r *Results) error {
	if !c.server.givesWay {
		return &Error{Code: Refused, Status: http.StatusNotFound, Err: errors.New("the server has no loads that give way")}
	}
	line, end, err := c.line(ctx, 0)
	if err != nil {
		return err
	}
	defer end()
	counts, err := line.Load(ctx, d, c.Duration, func(counts []netstat.Count) {
		now := counts[len(counts)-1].Elapsed
		c.Progress(Progress{Phase: c.phase, Elapsed: time.Duration(now) * time.Microsecond, Throughput: c.packets(lately(counts))})
	})
	if err != nil && ctx.Err() == nil {
		return &Error{Code: Stopped, Err: err}
	}
	if err != nil {
		return err
	}
	rate := Fastest(counts)
	if rate <= 0 {
		return errQuiet
	}
	r.Figures = append(r.Figures, netstat.FreeCapacity.Of(netstat.Direction(d), c.packets(rate)))
	return nil
}

// Fastest is the rate of the fastest two seconds, bit/s; 0: there were none.
func Fastest(counts []netstat.Count) (rate float64) {
	from := 0
	for _, c := range counts {
		for from+1 < len(counts) && c.Elapsed-counts[from+1].Elapsed >= freeWindow {
			from++
		}
		if span := c.Elapsed - counts[from].Elapsed; span >= freeWindow {
			rate = max(rate, netstat.Rate(c.Bytes-counts[from].Bytes, span))
		}
	}
	return rate
}

// packets is the rate of packets that lanes fill with messages of such a rate.
func (c *check) packets(rate float64) float64 {
	if c.server.here().Is4() {
		return rate * packet4 / packetPayload
	}
	return rate * packet6 / packetPayload
}

// Load has a load that gives way run for a time. It returns what had come how soon, of bytes of messages. progress hears it meanwhile.
// A line has one.
func (l *Line) Load(ctx context.Context, d quality.Direction, length time.Duration, progress func([]netstat.Count)) ([]netstat.Count, error) {
	if err := l.link.OpenLane(); err != nil {
		return nil, l.lost()
	}
	load := &laneLoad{stream: newStream(quality.Run{Stream: loadStream, Direction: d})}
	if d == quality.Down {
		load.receiver = background.NewReceiver(l.link, nil, time.Now)
		defer load.receiver.Close()
	}
	l.mu.Lock()
	l.streams[loadStream], l.load = load.stream, load
	l.mu.Unlock()
	if err := l.say(quality.Load{Stream: loadStream, Direction: d, Time: length.Microseconds()}); err != nil {
		return nil, l.lost()
	}
	opening, cancel := context.WithTimeoutCause(ctx, 2*patience, errSilent)
	defer cancel()
	if err := l.await(opening, load.stream, load.ready); err != nil {
		return nil, err
	}
	if d == quality.Down {
		return l.watch(ctx, length, load.came.Load, progress)
	}
	return l.upload(ctx, load, length, progress)
}

// upload sends a load.
func (l *Line) upload(ctx context.Context, load *laneLoad, length time.Duration, progress func([]netstat.Count)) ([]netstat.Count, error) {
	source := &plenty{}
	_, _ = rand.Read(source[:]) // never fails
	sender := background.NewSender(ledbat.Config{Controller: ledbat.HostWithin(quality.LeastTarget, quality.MostTarget)}, time.Now)
	lane := sender.Add(l.link, source, 0)
	l.mu.Lock()
	load.lane = lane
	l.mu.Unlock()
	sending, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { sender.Run(sending) })
	counts, err := l.watch(ctx, length, func() int64 {
		_, acked := sender.Totals()
		return acked
	}, progress)
	stop()
	work.Wait()
	lane.Close()
	if err != nil {
		return nil, err
	}
	if err := l.say(quality.Sent{Stream: loadStream}); err != nil {
		return nil, l.lost()
	}
	return counts, nil
}

// watch counts for a time.
func (l *Line) watch(ctx context.Context, length time.Duration, count func() int64, progress func([]netstat.Count)) (counts []netstat.Count, err error) {
	began, heard := time.Now(), time.Duration(0)
	counts = append(counts, netstat.Count{Bytes: count()})
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-l.gone:
			return nil, l.lost()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		now, bytes := time.Since(began), count()
		if bytes > counts[len(counts)-1].Bytes {
			heard = now
		}
		counts = append(counts, netstat.Count{Elapsed: now.Microseconds(), Bytes: bytes})
		switch {
		case now-heard >= patience:
			return nil, errQuiet
		case now >= length:
			return counts, nil
		}
		progress(counts)
	}
}

// Lane implements qualitylink.Events.
func (l *Line) Lane(b []byte, text bool) {
	l.mu.Lock()
	load := l.load
	var lane *background.Lane
	if load != nil {
		lane = load.lane
	}
	l.mu.Unlock()
	ok := false
	switch {
	case text || load == nil:
	case load.receiver != nil:
		part, fresh, err := load.receiver.Data(b)
		if ok = err == nil; ok && fresh {
			load.came.Add(int64(background.Header + len(part.Payload)))
		}
	case lane != nil:
		ok = lane.Ack(b)
	}
	if !ok {
		l.fail(errLane)
	}
}
