package netcheck

import (
	"testing"

	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/wire/quality"
)

// TestWhatWasNotSentIsNotLost: of a stream that was cut short the messages before the last three count.
func TestWhatWasNotSentIsNotLost(t *testing.T) {
	for _, c := range []struct{ sent, arrived, counted, lost int64 }{
		{1003, 1003, 1000, 0}, {1003, 900, 1000, 100}, {53, 53, 50, 0}, {53, 40, 50, 10}, {2, 2, 0, 0},
	} {
		s := newStream(quality.Run{Stream: 1, Direction: quality.Up, Messages: 1000, Interval: 1000, Size: MessageSize})
		s.sent(c.sent)
		for n := range c.arrived {
			s.record([]netstat.Arrival{{Sequence: n, Sent: n, Received: n}})
		}
		got := s.result().There
		if p := got.Pattern(); p.Sent != c.counted || p.Lost != c.lost {
			t.Errorf("%+v: %d count, %d are lost", c, p.Sent, p.Lost)
		}
	}
}
