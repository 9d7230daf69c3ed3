package netcheck

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/netstat"
)

// A download of the test comes in parts of this size, one after each of these times.
const (
	partSize  = 16 << 10
	partEvery = 5 * time.Millisecond
)

// stalling answers with a body that comes for so long, and then says nothing more.
type stalling time.Duration

// RoundTrip implements http.RoundTripper.
func (long stalling) RoundTrip(r *http.Request) (*http.Response, error) {
	body := &stalled{ctx: r.Context(), until: time.Now().Add(time.Duration(long))}
	return &http.Response{StatusCode: http.StatusOK, Request: r, Body: body}, nil
}

type stalled struct {
	ctx   context.Context
	until time.Time
}

// Read implements io.Reader.
func (s *stalled) Read(p []byte) (int, error) {
	var next <-chan time.Time
	if time.Now().Before(s.until) {
		next = time.After(partEvery)
	}
	select {
	case <-next:
		return min(len(p), partSize), nil
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

// Close implements io.Closer.
func (s *stalled) Close() error { return nil }

// TestASilenceBeforeTheEndOfADownloadCounts: a rate is by the test's time, and a download that was silent for too long has none.
func TestASilenceBeforeTheEndOfADownloadCounts(t *testing.T) {
	const length = 3 * time.Second
	for long, stopped := range map[time.Duration]bool{length * 3 / 10: true, length - 800*time.Millisecond: false} {
		synctest.Test(t, func(t *testing.T) {
			c := &check{Config: Config{Duration: length}, server: newServer(&url.URL{Scheme: "http", Host: "probe.test"}, "", nil)}
			c.server.http = &http.Client{Transport: stalling(long)}
			rate, err := c.httpDown(t.Context(), time.Now())
			const from = length/rampUpShare + partEvery // counting begins with the first part after the ramp-up
			want := netstat.Rate(int64((long-from)/partEvery)*partSize, (length - from).Microseconds())
			if errors.Is(err, errQuiet) != stopped || !stopped && (err != nil || rate != want) {
				t.Errorf("silent after %v: %.0f bit/s, not %.0f; %v", long, rate, want, err)
			}
		})
	}
}
