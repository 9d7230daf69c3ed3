package background

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestWhatIsDueSoonGoesOutTogether counts the moments at which messages go out at 100 Mbit/s: each is a timer, a system call
// and a few wake-ups. A sender for which a load waits has no rests.
func TestWhatIsDueSoonGoesOutTogether(t *testing.T) {
	const rate, took = 12_500_000, 5 * time.Second
	for _, eager := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			h := newHost(1, rate, 40*time.Millisecond)
			defer h.stop()
			h.sender.Eager(eager)
			wait(took)
			w := h.wires[0]
			from, _ := w.Sent()
			wait(took)
			w.Mu.Lock()
			at, sizes := w.At[from:], w.Sizes[from:]
			w.Mu.Unlock()
			moments, burst, largest, bytes := 0, 0, 0, 0
			for i, size := range sizes {
				if i == 0 || !at[i].Equal(at[i-1]) {
					moments, burst = moments+1, 0
				}
				burst += size
				largest, bytes = max(largest, burst), bytes+size
			}
			share := float64(moments) / float64(len(sizes))
			t.Logf("eager %v: %d messages at %d moments, the largest burst %d bytes; %d bytes/s", eager, len(sizes), moments, largest, bytes/int(took/time.Second))
			if eager && share < 0.9 {
				t.Errorf("%d messages of an eager host went out at %d moments", len(sizes), moments)
			}
			if !eager && share > 0.65 {
				t.Errorf("%d messages went out at %d moments", len(sizes), moments)
			}
			// What goes out in a rest after a slowdown, when pacing is at twice the window's rate, and what came just before and after.
			if most := 5*rate/2*restMost/1_000_000 + 2*maxMessage; !eager && largest > most {
				t.Errorf("a burst of %d bytes, want at most %d", largest, most)
			}
			if bytes < rate*5*9/10 {
				t.Errorf("%d bytes in %s of a line of %d/s", bytes, took, rate)
			}
		})
	}
}
