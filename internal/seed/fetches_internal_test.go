package seed

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

func may() bool { return true }

// TestOneFetchServesAllThatWait, and a sibling that waits has it leave the fleet for the origin: the seed that the fleet would ask may
// wait for this one.
func TestOneFetchServesAllThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := newTasks()
		f := newFetches(work, time.Now)
		want, runs := &held{id: segment.ID{1}}, 0
		source := func(ctx, fleet context.Context) (result, time.Duration) {
			runs++
			<-fleet.Done() // the sibling that is asked does not answer
			if ctx.Err() != nil {
				return result{none: peer.NoneOrigin}, failedFor
			}
			return result{held: want}, 0
		}
		var all []*fetch
		for range 3 {
			one, _ := f.join(want.id, false, may, source)
			all = append(all, one)
		}
		synctest.Wait()
		select {
		case <-all[0].done:
			t.Fatal("it does not wait for the fleet")
		default:
		}
		sibling, _ := f.join(want.id, true, may, source)
		for _, one := range append(all, sibling) {
			if got := one.wait(t.Context()); got.held != want || one != sibling {
				t.Errorf("%+v", got)
			}
		}
		if runs != 1 {
			t.Errorf("%d fetches of one segment", runs)
		}
		began := time.Now()
		alone, _ := f.join(segment.ID{2}, true, may, source)
		if got := alone.wait(t.Context()); got.held != want || time.Since(began) > 0 {
			t.Error("what a sibling asks for waits for the fleet")
		}
		work.end()
		if one, got := f.join(segment.ID{3}, false, may, source); one != nil || got.none != peer.NoneBudget {
			t.Error("a fetch begins while the seed ends")
		}
		work.wait()
		if len(f.running) > 0 {
			t.Errorf("%d are left behind", len(f.running))
		}
	})
}

// TestFailuresAreRememberedForAWhile, and not beyond a revocation.
func TestFailuresAreRememberedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := newTasks()
		defer work.wait()
		f := newFetches(work, time.Now)
		runs := 0
		fails := func(context.Context, context.Context) (result, time.Duration) {
			runs++
			return result{none: peer.NoneNotAllowed}, time.Minute
		}
		ask := func() result {
			one, got := f.join(segment.ID{1}, false, may, fails)
			if one != nil {
				got = one.wait(t.Context())
			}
			return got
		}
		for range 3 {
			if got := ask(); got.none != peer.NoneNotAllowed {
				t.Errorf("%+v", got)
			}
		}
		if runs != 1 {
			t.Errorf("asked %d times for what was refused just now", runs)
		}
		f.retry()
		if ask(); runs != 2 {
			t.Error("what was refused before a revocation is refused after it")
		}
		<-time.After(time.Minute)
		if ask(); runs != 3 {
			t.Error("refused for longer than the failure holds")
		}
		<-time.After(time.Minute + 1)
		if f.expire(); len(f.failed) > 0 {
			t.Errorf("%d failures are remembered", len(f.failed))
		}
		if one, got := f.join(segment.ID{2}, false, func() bool { return false }, fails); one != nil || got.none != peer.NoneBudget || runs != 3 {
			t.Error("a session without a budget has a segment fetched")
		}
	})
}

// TestAFetchOutlivesTheRequest: the viewer that began it may go.
func TestAFetchOutlivesTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := newTasks()
		defer work.wait()
		f := newFetches(work, time.Now)
		release := make(chan struct{})
		one, _ := f.join(segment.ID{1}, false, may, func(context.Context, context.Context) (result, time.Duration) {
			<-release
			return result{held: &held{}}, 0
		})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got := one.wait(ctx); got.none != peer.NoneOrigin {
			t.Errorf("%+v", got)
		}
		close(release)
		if got := one.wait(t.Context()); got.held == nil {
			t.Error("it went with the viewer")
		}
	})
}
