package background

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestAnAckThatIsDueSoonerIsNotKeptForTheTimer: a message waits for its ack, and comes while the timer of an earlier one runs and two
// milliseconds after the last ack are not over.
func TestAnAckThatIsDueSoonerIsNotKeptForTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var mu sync.Mutex
		var acks []time.Duration // guarded by mu: when they went out
		r := NewReceiver(&testkit.Link{Acked: func([]byte) {
			mu.Lock()
			defer mu.Unlock()
			acks = append(acks, time.Since(begun).Round(10*time.Microsecond))
		}}, nil, time.Now)
		defer r.Close()
		for i, m := range []struct {
			after time.Duration // the one before
			now   bool          // its ack is waited for
		}{
			{10 * time.Millisecond, false}, {0, false}, // two: acknowledged at once
			{500 * time.Microsecond, false}, {500 * time.Microsecond, true}, // two milliseconds after that
			{2 * time.Millisecond, false}, // after 25 ms
		} {
			wait(m.after)
			message := appendData(nil, peer.Data{Payload: []byte{1}}, ledbat.Stamp{Sequence: uint32(i), AckNow: m.now})
			if _, fresh, err := r.Data(message); err != nil || !fresh {
				t.Fatalf("message %d: fresh %v, %v", i, fresh, err)
			}
		}
		wait(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if want := []time.Duration{10 * time.Millisecond, 12 * time.Millisecond, 38 * time.Millisecond}; !slices.Equal(acks, want) {
			t.Errorf("acks went out after %v, want %v", acks, want)
		}
	})
}
