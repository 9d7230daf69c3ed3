// Package probebench is `leeway-lab bench probe`: how true the network check is, on lines whose properties are known, beside the
// figures of Klang's thesis (Browser based network measurements, 2015), whose tables K1 to K12 name the cases. The check is `leeway
// probe run`, or @leeway/netcheck in a browser; the server is `leeway probe serve`.
package probebench

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
	"github.com/leeway-video/leeway/internal/lab/netlab"
)

const benchName = "probe"

// Bench is the bench.
var Bench = bench.Bench{
	Name:  benchName,
	About: "How true the network check is, on lines whose properties are known, beside the figures of Klang's thesis.",
	Roles: map[string]bench.Role{roleLine: runLine},
}

func init() { Bench.Cases = cases() } // Bench's own functions name it

const (
	mbit = 1_000_000
	ms   = time.Millisecond
	// testTime is how long a TCP test of the bench is; longTime where a mean is compared with another.
	testTime = 4 * time.Second
	longTime = 10 * time.Second
)

// thesis is a reference to a figure of it.
func thesis(table string, value float64) *bench.Reference {
	return &bench.Reference{Value: value, Source: "Klang 2015, " + table}
}

// checker runs a check of the line from a stage's client.
type checker struct {
	name  string
	run   func(ctx context.Context, r *bench.Run, s *stage, p plan) (results, error)
	needs func(context.Context) error
}

var (
	terminal = checker{name: "terminal", run: runTerminal}
	chromium = checker{name: "chromium", run: inBrowser(false), needs: demopage.MissingEnd}
	firefox  = checker{name: "firefox", run: inBrowser(true), needs: demopage.MissingFirefoxEnd}
)

func cases() []bench.Case {
	list := []bench.Case{
		baselines(terminal), loaded(terminal),
	}
	for _, rate := range []int64{2 * mbit, 20 * mbit, 50 * mbit} {
		list = append(list, capacity(terminal, rate))
	}
	for _, w := range wastes {
		list = append(list, losing(w))
	}
	list = append(list, reordering(), channelDelay(terminal, 0), channelDelay(terminal, 10*ms), efficiency(0), efficiency(0.01), efficiency(0.05), packets(), marks(), jitters(), windows())
	for _, delay := range []time.Duration{0, 10 * ms, 20 * ms} {
		list = append(list, beside(terminal, delay))
	}
	list = append(list, responsiveness(20*mbit, 20*ms), responsiveness(50*mbit, 50*ms))
	list = append(list, reaching(terminal), far(terminal), lossy(terminal), crowd())
	list = append(list, sharedLines()...)
	for _, c := range []checker{chromium, firefox} {
		b := []bench.Case{baselines(c), loaded(c), capacity(c, 20*mbit), channelDelay(c, 0), channelDelay(c, 10*ms), givesWay(c, 5*mbit, 50*ms), givesWay(c, 20*mbit, 50*ms), reaching(c), far(c), lossy(c), responsivenessOfPage(c, 20*mbit, 20*ms)}
		for _, delay := range []time.Duration{0, 10 * ms, 20 * ms} {
			b = append(b, beside(c, delay))
		}
		for i := range b {
			b[i].Extra = true
		}
		list = append(list, b...)
	}
	return list
}

// both is a line with the same properties both ways, and a queue that holds a bandwidth-delay product or a few packets.
func both(rate int64, rtt time.Duration) netlab.Path {
	return netlab.Both(netlab.Link{Rate: rate, Delay: rtt / 2, Queue: max(netlab.BDP(rate, rtt), 64<<10)})
}

// possible is the largest throughput of TCP payload on a line, bit/s: 1,448 bytes of each packet of 1,500.
func possible[T int64 | float64](rate T) float64 { return float64(rate) * 1448 / 1500 }

// lacks says what the machine lacks for a program.
func lacks(program string) error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("%s is missing: apt-get install %s", program, program)
	}
	return nil
}
