package rtclink

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestALifeEndsOnce: the first of all ends counts, it waits for what was let in, and nothing is let in behind it.
func TestALifeEndsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l life
		ends, called := make(chan peer.CloseReason, 4), 0
		l.begin(func(reason peer.CloseReason, _ []byte, _ bool) {
			l.close()
			l.cancel()
			l.running.Wait()
			ends <- reason
		})
		if !l.enter() || !l.open() || !l.usable() {
			t.Fatal("a link that lives lets nothing in")
		}
		l.after(time.Second, func() { called++ })
		l.after(time.Minute, func() { called += 10 })
		l.Close(peer.CloseIdle, nil)
		l.Close(peer.CloseFailed, nil)
		l.abandon()
		synctest.Wait()
		if l.enter() || l.open() || l.usable() || len(ends) != 0 || l.ctx.Err() == nil {
			t.Errorf("a link that ends lets something in, or has not waited (%d ends)", len(ends))
		}
		l.after(time.Second, func() { called += 100 })
		l.running.Done()
		l.running.Done()
		synctest.Wait()
		if len(ends) != 1 || <-ends != peer.CloseIdle {
			t.Error("not ended once, for the first reason")
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if called != 0 {
			t.Errorf("timers of a link that has ended were called: %d", called)
		}
	})
}

// TestALifeHasOneTimer: what it was set for last is what it calls.
func TestALifeHasOneTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l life
		l.begin(func(peer.CloseReason, []byte, bool) {})
		defer l.cancel()
		called := 0
		l.after(time.Second, func() { called++ })
		l.after(time.Minute, func() { called += 10 })
		<-time.After(time.Hour)
		synctest.Wait()
		if called != 10 {
			t.Errorf("called %d, want 10 for the last one alone", called)
		}
	})
}

// TestAbandonedLinksTellNothing: an owner that never had a link does not hear of its end.
func TestAbandonedLinksTellNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l life
		told := make(chan bool, 1)
		l.begin(func(_ peer.CloseReason, _ []byte, tell bool) { told <- tell })
		defer l.cancel()
		l.abandon()
		if <-told {
			t.Error("the owner is told")
		}
	})
}
