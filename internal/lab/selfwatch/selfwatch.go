// Package selfwatch measures what a load generator itself costs, and whether it was late: a generator that is the bottleneck measures
// itself. Figures are of this process, and where they say so of its network namespace or machine.
package selfwatch

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/leeway-video/leeway/internal/lab/armwire"
	"github.com/leeway-video/leeway/internal/lab/proc"
	"github.com/leeway-video/leeway/internal/procstat"
)

// lagStep is how often the clock is looked at: a goroutine that sleeps so long comes late by what the scheduler makes it wait. A tick that
// comes late by more has kept those behind it, which count by their own lateness: a stall of half a second is not one tick of a hundred.
const lagStep = 10 * time.Millisecond

// Watch is of one process. The zero value is ready for Start.
type Watch struct {
	wg sync.WaitGroup

	mu      sync.Mutex
	lag     *hdrhistogram.Histogram // guarded by mu: µs late, since the last figures
	machine proc.Processors         // guarded by mu: at the last figures; zero where the system does not tell
}

// Start looks at the clock until ctx ends.
func (w *Watch) Start(ctx context.Context) {
	w.mu.Lock()
	w.lag = hdrhistogram.New(1, time.Minute.Microseconds(), 2)
	w.machine, _ = proc.ReadProcessors()
	w.mu.Unlock()
	w.wg.Go(func() {
		timer := time.NewTimer(lagStep)
		defer timer.Stop()
		for begun := time.Now(); ; begun = time.Now() {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			w.late(time.Since(begun) - lagStep)
			timer.Reset(lagStep)
		}
	})
}

// Wait returns when nothing of it runs any more.
func (w *Watch) Wait() { w.wg.Wait() }

func (w *Watch) late(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.lag.RecordCorrectedValue(min(max(d.Microseconds(), 0), time.Minute.Microseconds()), lagStep.Microseconds()) // within the histogram's range
}

// Figures are those of now. take begins the time anew that Lag and MachineBusy are of.
func (w *Watch) Figures(take bool) armwire.MachineFigures {
	resident, _ := proc.Resident(os.Getpid()) // 0 where the system does not tell
	f := armwire.MachineFigures{
		CPU: procstat.CPU().Microseconds(), RSS: resident, Goroutines: runtime.NumGoroutine(), GC: garbage().Microseconds(), Drops: drops(),
		Processors: runtime.GOMAXPROCS(0),
	}
	machine, _ := proc.ReadProcessors()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lag == nil {
		return f
	}
	f.Lag = w.lag.ValueAtQuantile(99)
	if idle, _ := machine.Since(w.machine); w.machine.Count > 0 && machine.Count > 0 {
		f.MachineBusy = int64(1000 * (1 - idle))
	}
	if take {
		w.lag.Reset()
		w.machine = machine
	}
	return f
}

// garbage is the processor time of the garbage collector.
func garbage() time.Duration {
	s := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64 {
		return 0
	}
	return time.Duration(s[0].Value.Float64() * float64(time.Second))
}

// drops is how many datagrams the UDP sockets of this network namespace had no room for; 0 where the system does not tell.
func drops() int64 {
	b, err := os.ReadFile("/proc/self/net/snmp")
	if err != nil {
		return 0
	}
	return column(b, "Udp:", "RcvbufErrors")
}

// column reads a value of a table of two lines: names and values.
func column(table []byte, row, name string) int64 {
	var names []string
	for line := range bytes.Lines(table) {
		fields := strings.Fields(string(line))
		if len(fields) == 0 || fields[0] != row {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, n := range names {
			if n == name && i < len(fields) {
				v, _ := strconv.ParseInt(fields[i], 10, 64)
				return v
			}
		}
	}
	return 0
}
