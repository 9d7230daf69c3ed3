package background

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"
)

// TestLinksThatLieStopNoOther: through the sender's turns, too. Four of five links send no acks, or send them late with a receive
// time to suit. Half a minute is what the window may take to come back.
func TestLinksThatLieStopNoOther(t *testing.T) {
	const rate, late = 1_250_000, 300 * time.Millisecond
	for _, lie := range []struct {
		name string
		tell func(ack func([]byte), b []byte)
	}{
		{"no acks", func(func([]byte), []byte) {}},
		{"late acks", func(ack func([]byte), b []byte) {
			const receivedAt = 1 + 4 + 4 + 8
			at := binary.BigEndian.Uint32(b[receivedAt:])
			binary.BigEndian.PutUint32(b[receivedAt:], at+uint32(late.Microseconds()))
			time.AfterFunc(late, func() { ack(b) })
		}},
	} {
		t.Run(lie.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(5, rate, 40*time.Millisecond)
				defer h.stop()
				wait(2 * time.Second)
				for _, w := range h.wires[1:] {
					w.Mu.Lock()
					ack := w.Acked
					w.Acked = func(b []byte) { lie.tell(ack, b) }
					w.Mu.Unlock()
				}
				wait(30 * time.Second)
				_, before := h.wires[0].Sent()
				wait(20 * time.Second)
				_, after := h.wires[0].Sent()
				t.Logf("%.2f of the line", float64(after-before)/20/rate)
				if after-before < 20*rate*7/10 {
					t.Errorf("the honest link has %.3f of the line", float64(after-before)/20/rate)
				}
				wait(late)
			})
		})
	}
}
