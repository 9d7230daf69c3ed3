package probebench

import (
	"errors"
	"time"

	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// meter looks at what a direction carries between a test's ramp-up and its end.
type meter struct {
	line *netlab.Direction
	seen chan look
}

// look is a line's counters at a time.
type look struct {
	counted
	at time.Time
}

// meterEnd is how long before the end of a test the second look is.
const meterEnd = 500 * time.Millisecond

func newMeter(line *netlab.Direction) *meter { return &meter{line, make(chan look, 2)} }

// begin begins with a test.
func (m *meter) begin() {
	for _, after := range []time.Duration{longTime / rampUpShare, longTime - meterEnd} {
		time.AfterFunc(after, func() { m.seen <- look{count(m.line), time.Now()} })
	}
}

// rate is what the line has carried, bit/s, headers included. The test is over.
func (m *meter) rate() (float64, error) {
	first, last := <-m.seen, <-m.seen
	if err := errors.Join(first.err, last.err); err != nil {
		return 0, err
	}
	return 8 * float64(last.SentBytes-first.SentBytes) / last.at.Sub(first.at).Seconds(), nil
}
