package netcheck

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/netstat"
)

// http measures throughput by HTTP, both ways.
func (c *check) http(ctx context.Context, r *Results) error {
	down, err := c.parallel(ctx, c.httpDown)
	if err != nil {
		return err
	}
	r.HTTP = append(r.HTTP, netstat.Throughput.Of(netstat.Down, down))
	up, err := c.parallel(ctx, c.httpUp)
	if err != nil {
		return err
	}
	r.HTTP = append(r.HTTP, netstat.Throughput.Of(netstat.Up, up))
	return nil
}

// parallel runs as many transfers as the check has streams, and adds up their rates after the ramp-up.
func (c *check) parallel(ctx context.Context, one func(context.Context, time.Time) (float64, error)) (rate float64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Duration+2*patience, errQuiet)
	defer cancel()
	start := time.Now()
	var mu sync.Mutex
	var work sync.WaitGroup
	for range c.Streams {
		work.Go(func() {
			got, e := one(ctx, start)
			mu.Lock()
			defer mu.Unlock()
			rate += got
			if e != nil {
				err = e
			}
		})
	}
	work.Wait()
	c.Progress(Progress{Phase: HTTP, Elapsed: time.Since(start), Throughput: rate})
	return rate, err
}

// httpDown is one download: bytes that came after the ramp-up, by the time until the test's end. A silence before the end counts.
func (c *check) httpDown(ctx context.Context, start time.Time) (float64, error) {
	ctx, cancel := context.WithDeadlineCause(ctx, start.Add(c.Duration), errQuiet)
	defer cancel()
	r, err := c.server.request(ctx, http.MethodGet, c.server.url("/probe/v1/download"), nil)
	if err != nil {
		return 0, err
	}
	response, err := c.server.do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	buffer := make([]byte, 64<<10)
	rampUp := start.Add(c.Duration / rampUpShare)
	var from, last time.Time
	for bytes := int64(0); ; {
		n, err := response.Body.Read(buffer)
		now := time.Now()
		switch {
		case n > 0 && !from.IsZero():
			bytes, last = bytes+int64(n), now
		case n > 0 && now.After(rampUp):
			from, last = now, now
		}
		if err == nil && now.Sub(start) < c.Duration {
			continue
		}
		if now.Sub(start) < c.Duration*9/10 || bytes == 0 || now.Sub(last) >= c.quiet() {
			return 0, errQuiet
		}
		return netstat.Rate(bytes, now.Sub(from).Microseconds()), nil
	}
}

// httpUp is one upload. The server says what came and in what time; the part before the ramp-up cannot be told from the rest.
func (c *check) httpUp(ctx context.Context, start time.Time) (float64, error) {
	body := &endless{until: start.Add(c.Duration)}
	r, err := c.server.request(ctx, http.MethodPost, c.server.url("/probe/v1/upload"), body)
	if err != nil {
		return 0, err
	}
	var got struct {
		Bytes   int64 `json:"bytes"`
		Elapsed int64 `json:"elapsed_us"`
	}
	if err := c.server.answer(r, &got); err != nil {
		return 0, err
	}
	if got.Bytes <= 0 || got.Elapsed <= 0 || got.Bytes > body.sent.Load() {
		return 0, errors.New("the server says that it received what cannot be")
	}
	return netstat.Rate(got.Bytes, got.Elapsed), nil
}

// endless is a body that ends at a time.
type endless struct {
	until time.Time
	sent  atomic.Int64
}

// Read implements io.Reader.
func (e *endless) Read(p []byte) (int, error) {
	if time.Now().After(e.until) {
		return 0, io.EOF
	}
	for i := 0; i+8 <= len(p); i += 8 {
		v := rand.Uint64()
		for k := range 8 {
			p[i+k] = byte(v >> (8 * k))
		}
	}
	e.sent.Add(int64(len(p)))
	return len(p), nil
}
