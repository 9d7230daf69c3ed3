package sleep

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if ctx := t.Context(); !For(ctx, time.Minute) || time.Since(begin) != time.Minute {
			t.Errorf("an undisturbed minute took %v, or there was no reason to go on after it", time.Since(begin))
		}
		if !For(t.Context(), 0) || !For(t.Context(), -time.Second) {
			t.Error("no wait is no reason to stop")
		}

		begin = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if For(ctx, time.Minute) || time.Since(begin) != time.Second {
			t.Errorf("a wait that ended after a second took %v, or is a reason to go on", time.Since(begin))
		}
		for range 100 { // a select would toss a coin
			if For(ctx, 0) {
				t.Fatal("goes on after the end")
			}
		}
	})
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, end := time.Now(), make(chan struct{})
		if !Until(end, time.Minute) || time.Since(begin) != time.Minute {
			t.Errorf("waited for %v, or says that what has not ended has", time.Since(begin))
		}
		begin = time.Now()
		time.AfterFunc(time.Second, func() { close(end) })
		if Until(end, time.Minute) || time.Since(begin) != time.Second {
			t.Errorf("waited for %v for what ended after a second", time.Since(begin))
		}
		for range 100 { // a select would toss a coin
			if Until(end, 0) {
				t.Fatal("says that what has ended has not")
			}
		}
	})
}
