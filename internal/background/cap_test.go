package background

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leeway-video/leeway/internal/testkit/spec"
)

func TestCapVectors(t *testing.T) {
	file := spec.Vectors[struct {
		Cases []struct {
			Name string
			Kbps int64
			Sent []struct {
				At    int64 `json:"at_us"`
				Bytes int64
				Next  int64 `json:"next_us"`
			}
		}
	}](t, "upload-cap.json")
	for _, c := range file.Cases {
		var u uploadCap
		u.kbps.Store(c.Kbps)
		for i, m := range c.Sent {
			if u.sent(m.At, m.Bytes); u.at() != m.Next {
				t.Errorf("%s, message %d: the next may go at %d, want %d", c.Name, i, u.at(), m.Next)
			}
		}
	}
}

// TestACapHoldsOverAllLinks: three links on a line of 10 Mbit/s send 800 kbit/s together, and all that the line takes once there is no cap.
func TestACapHoldsOverAllLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(3, 1_250_000, 40*time.Millisecond)
		defer h.stop()
		h.sender.Cap(800)
		wait(2 * time.Second)
		_, before := total(h)
		wait(8 * time.Second)
		_, after := total(h)
		if got := (after - before) / 8; got < 95_000 || got > 101_000 {
			t.Errorf("%d bytes a second under a cap of 100,000", got)
		}
		h.sender.Cap(0)
		wait(8 * time.Second)
		if _, free := total(h); free-after < 8*400_000 {
			t.Errorf("%d bytes a second without a cap", (free-after)/8)
		}
	})
}
