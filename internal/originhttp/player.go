package originhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/viewer"
)

// Limits of a player's fetches.
const (
	playerConns   = 6 // to one host, as browsers have it
	playerTimeout = 2 * time.Minute
	silentFor     = 5 * time.Second // that the origin may leave what was sent unconfirmed
	readChunk     = 64 << 10
	maxBody       = 1 << 30
)

// Player fetches as a player's loader does: any URL, a few connections a host, the transfer timed. It satisfies
// viewer.Origin.
type Player struct {
	http *http.Client
	ctx  context.Context
	stop context.CancelFunc
	busy sync.WaitGroup
}

var _ viewer.Origin = (*Player)(nil)

// NewPlayer makes one. dial opens its connections, for players that live in a network namespace of their own; nil is the
// process's.
func NewPlayer(dial func(ctx context.Context, network, address string) (net.Conn, error)) *Player {
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	ctx, stop := context.WithCancel(context.Background())
	watched := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
			if raw, err := tcp.SyscallConn(); err == nil {
				_ = giveUpSilent(raw) // without, it takes longer
			}
		}
		return conn, err
	}
	return &Player{ctx: ctx, stop: stop, http: &http.Client{Transport: &http.Transport{
		DialContext: watched, DisableCompression: true, ResponseHeaderTimeout: headerTimeout, TLSHandshakeTimeout: dialTimeout,
		MaxResponseHeaderBytes: maxHeader, MaxConnsPerHost: playerConns, MaxIdleConnsPerHost: playerConns, IdleConnTimeout: time.Minute,
		ForceAttemptHTTP2: true, ReadBufferSize: readChunk,
	}}}
}

// Close ends what is on its way and returns when nothing runs any more.
func (p *Player) Close() {
	p.stop()
	p.busy.Wait()
	p.http.CloseIdleConnections()
}

// Get implements viewer.Origin.
func (p *Player) Get(f viewer.Fetch, progress func(int64), done func(viewer.Fetched, error)) (cancel func()) {
	ctx, cancel := context.WithTimeout(p.ctx, playerTimeout)
	p.busy.Go(func() {
		defer cancel()
		got, err := p.get(ctx, f, progress)
		done(got, err)
	})
	return cancel
}

func (p *Player) get(ctx context.Context, f viewer.Fetch, progress func(int64)) (viewer.Fetched, error) {
	var none viewer.Fetched
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL, nil)
	if err != nil {
		return none, fmt.Errorf("get %s: %w", f.URL, err)
	}
	if f.Ranged {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", f.First, f.Last))
	}
	res, err := p.http.Do(req)
	if err != nil {
		return none, fmt.Errorf("get: %w", err) // names method and URL
	}
	defer res.Body.Close() //nolint:errcheck // what was needed has been read
	switch {
	case f.Ranged && res.StatusCode != http.StatusPartialContent, !f.Ranged && res.StatusCode != http.StatusOK:
		return none, fmt.Errorf("get %s: status %d", f.URL, res.StatusCode)
	case f.Ranged && res.ContentLength != f.Last-f.First+1:
		return none, fmt.Errorf("get %s: another range than bytes %d-%d", f.URL, f.First, f.Last)
	}
	most := int64(maxBody)
	if f.MaxBytes > 0 {
		most = min(most, f.MaxBytes)
	}
	if !f.Ranged {
		if err := Unpack(res, most); err != nil {
			return none, fmt.Errorf("get %s: %w", f.URL, err)
		}
	}
	if res.ContentLength > most {
		return none, fmt.Errorf("get %s: %w: %d bytes; at most %d", f.URL, viewer.ErrTooLarge, res.ContentLength, most)
	}
	unshared := cacheControl(res.Header, "no-store") != ""
	heard := func([]byte, bool) {}
	if f.Growing != nil {
		heard = f.Growing.Heard
	}
	data, took, err := timed(res, most, func(had, has []byte) {
		progress(int64(len(has)))
		heard(has[len(had):], unshared)
	})
	if err != nil {
		return none, fmt.Errorf("get %s: %w", f.URL, err)
	}
	return viewer.Fetched{Data: data, URL: res.Request.URL.String(), Transfer: took, Unshared: unshared}, nil
}

// timed reads a body of so many bytes at most, and says how long it took from the first byte to the last.
func timed(res *http.Response, most int64, progress func(had, has []byte)) ([]byte, time.Duration, error) {
	var data []byte
	if res.ContentLength > 0 {
		data = make([]byte, 0, res.ContentLength+1) // one more, so that the end is seen without growing
	}
	var first time.Time
	for {
		if len(data) == cap(data) {
			data = append(data, make([]byte, max(readChunk, len(data)))...)[:len(data)]
		}
		n, err := res.Body.Read(data[len(data):min(cap(data), len(data)+readChunk)])
		if n > 0 && first.IsZero() {
			first = time.Now()
		}
		had := data
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > most:
			return nil, 0, fmt.Errorf("%w: more than %d bytes", viewer.ErrTooLarge, most)
		case errors.Is(err, io.EOF):
			if first.IsZero() {
				return data, 0, nil
			}
			return data, time.Since(first), nil
		case err != nil:
			return nil, 0, err
		}
		progress(had, data)
	}
}
