package netcheck

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/netstat"
)

// stalling sends a download for so long, and then nothing more. sent counts from a time on.
func stalling(long time.Duration, from time.Time, sent *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		part := make([]byte, 16<<10)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for began := time.Now(); time.Since(began) < long; <-tick.C {
			if _, err := w.Write(part); err != nil || http.NewResponseController(w).Flush() != nil {
				return
			}
			if time.Now().After(from) {
				sent.Add(int64(len(part)))
			}
		}
		<-r.Context().Done()
	})
}

// TestASilenceBeforeTheEndOfADownloadCounts: a rate is by the test's time, and a download that was silent for too long has none.
func TestASilenceBeforeTheEndOfADownloadCounts(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	const length = 3 * time.Second
	var work sync.WaitGroup
	for long, stopped := range map[time.Duration]bool{length * 3 / 10: true, length - 800*time.Millisecond: false} {
		work.Go(func() {
			start := time.Now()
			var sent atomic.Int64
			c := secured(t, stalling(long, start.Add(length/rampUpShare), &sent), false)
			c.Duration = length
			ctx, cancel := context.WithTimeout(t.Context(), length+time.Second)
			defer cancel()
			rate, err := c.httpDown(ctx, start)
			most := 1.15 * netstat.Rate(sent.Load(), (length-length/rampUpShare).Microseconds())
			if errors.Is(err, errQuiet) != stopped || !stopped && (err != nil || rate <= 0 || rate > most) {
				t.Errorf("silent after %v: %.0f bit/s, at most %.0f; %v", long, rate, most, err)
			}
		})
	}
	work.Wait()
}
