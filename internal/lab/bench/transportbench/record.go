package transportbench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// step is how often the counters are read.
const step = 100 * time.Millisecond

// record is what was seen of a scene, from outside: the lab's counters behind the bottleneck and the witness's round
// trips. What senders say of themselves is kept beside it.
type record struct {
	scene scene
	begun time.Time
	times []time.Duration
	sent  [][]uint64 // by flow, at each time: IP bytes behind the bottleneck

	cpu [][]spent // by flow: when one began or ended

	packets, drops, lost []uint64 // at each time: that came to the bottleneck, that found no room there, that it lost

	mu     sync.Mutex
	echoes []echo      // guarded by mu
	queue  []standing  // guarded by mu: what the emulator had waiting
	states [][]state   // guarded by mu; by flow
	bursts [][]arrival // guarded by mu; by flow
}

// spent is what the processes of a flow had used at a moment, in seconds.
type spent struct {
	at      time.Duration
	seconds float64
}

// echo is one round trip of the witness.
type echo struct {
	at  time.Duration // when it was sent
	rtt time.Duration
}

// state is what a background sender says of itself. Times are milliseconds.
type state struct {
	AtMS      int64   `json:"at_ms"` // since it was started
	Law       string  `json:"law"`
	Window    int64   `json:"window"` // bytes
	Flight    int64   `json:"flight"`
	Sent      int64   `json:"sent"`
	Acked     int64   `json:"acked"`
	Base      float64 `json:"base"`
	Queuing   float64 `json:"queuing"`
	Target    float64 `json:"target"`
	RTT       float64 `json:"rtt"`
	Slowdowns int64   `json:"slowdowns"`
	Losses    int64   `json:"losses"` // bytes
	Timeouts  int64   `json:"timeouts"`
	Parts     int     `json:"parts"` // among how many tabs the line is divided; 0 where there are none
}

// arrival is a foreground burst that has arrived.
type arrival struct {
	Bytes   int     `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

func newRecord(s scene) *record {
	n := len(s.flows)
	return &record{scene: s, sent: make([][]uint64, n), cpu: make([][]spent, n), states: make([][]state, n), bursts: make([][]arrival, n)}
}

// flow is where the driver of a flow tells what its ends say.
func (r *record) flow(i int) teller { return teller{r, i} }

type teller struct {
	record *record
	flow   int
}

func (t teller) state(s state) {
	t.record.mu.Lock()
	defer t.record.mu.Unlock()
	t.record.states[t.flow] = append(t.record.states[t.flow], s)
}

func (t teller) burst(b arrival) {
	t.record.mu.Lock()
	defer t.record.mu.Unlock()
	t.record.bursts[t.flow] = append(t.record.bursts[t.flow], b)
}

func (r *record) begin(now time.Time) { r.begun = now }

func (r *record) echo(e echo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.echoes = append(r.echoes, e)
}

// look takes down the counters of one moment.
func (r *record) look(now time.Duration, report netlab.Report) {
	r.times = append(r.times, now)
	for i, f := range r.scene.flows {
		sum := uint64(0)
		for k := range max(f.peers, 1) {
			sum += report.Directions["right→"+farName(i, k)].Bytes
		}
		if f.reverse {
			sum = report.Directions["left→"+nearName(i, 0)].Bytes
		}
		r.sent[i] = append(r.sent[i], sum)
	}
	c := report.Directions["left→right"]
	r.packets = append(r.packets, c.Packets)
	r.drops = append(r.drops, c.QueueDrops+c.AQMDrops)
	r.lost = append(r.lost, c.Lost)
}

// at interpolates a counter.
func (r *record) at(counter []uint64, when time.Duration) float64 {
	i := sort.Search(len(r.times), func(i int) bool { return r.times[i] >= when })
	switch {
	case i == 0:
		return float64(counter[0])
	case i == len(r.times):
		return float64(counter[i-1])
	}
	part := float64(when-r.times[i-1]) / float64(r.times[i]-r.times[i-1])
	return float64(counter[i-1]) + part*float64(counter[i]-counter[i-1])
}

// rate is what flows had together behind the bottleneck, bits per second of IP packets. Flows are counted from 0.
func (r *record) rate(from, to time.Duration, flows ...int) float64 {
	sum := 0.0
	for _, i := range flows {
		sum += r.at(r.sent[i], to) - r.at(r.sent[i], from)
	}
	return sum * 8 / (to - from).Seconds()
}

// used is the share of the line that flows had.
func (r *record) used(from, to time.Duration, flows ...int) float64 {
	return r.rate(from, to, flows...) / float64(r.scene.line.Rate)
}

// dropped is the share of the packets that found no room in the queue, all of which are sent again.
func (r *record) dropped(from, to time.Duration) float64 {
	packets := r.at(r.packets, to) - r.at(r.packets, from)
	if packets == 0 {
		return 0
	}
	return (r.at(r.drops, to) - r.at(r.drops, from)) / packets
}

func (r *record) spends(flow int, at time.Duration, seconds float64) {
	r.cpu[flow] = append(r.cpu[flow], spent{at, seconds})
}

// cost is what a flow's processes used for a gigabyte of its packets, in seconds, from the scene's begin to a change of flows.
func (r *record) cost(flow int, to time.Duration) float64 {
	first, last := r.cpu[flow][0], r.cpu[flow][0]
	for _, s := range r.cpu[flow] {
		if s.at < to+step {
			last = s
		}
	}
	return (last.seconds - first.seconds) / (r.at(r.sent[flow], last.at) - r.at(r.sent[flow], first.at)) * 1e9
}

// base is the witness's shortest round trip.
func (r *record) base() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	base := time.Duration(math.MaxInt64)
	for _, e := range r.echoes {
		base = min(base, e.rtt)
	}
	return base
}

// goodput is what a background sender's peers acknowledged, in Mbit/s.
func (r *record) goodput(flow int, from, to time.Duration) float64 {
	told := r.told(flow, from, to)
	if len(told) < 2 {
		return 0
	}
	first, last := told[0], told[len(told)-1]
	return float64(last.Acked-first.Acked) * 8 / float64(last.AtMS-first.AtMS) / 1000
}

// took is how long the foreground bursts of a flow took, in seconds and in order of size.
func (r *record) took(flow int) []float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []float64
	for _, b := range r.bursts[flow] {
		all = append(all, b.Seconds)
	}
	slices.Sort(all)
	return all
}

// added are the witness's round trips of a time, less the shortest of the whole scene, in order of size.
func (r *record) added(from, to time.Duration) []time.Duration {
	base := r.base()
	r.mu.Lock()
	defer r.mu.Unlock()
	var in []time.Duration
	for _, e := range r.echoes {
		if e.at >= from && e.at < to {
			in = append(in, e.rtt)
		}
	}
	for i := range in {
		in[i] -= base
	}
	slices.Sort(in)
	return in
}

// addedP is a quantile of added, in milliseconds.
func (r *record) addedP(p float64, from, to time.Duration) float64 {
	in := r.added(from, to)
	if len(in) == 0 {
		return 0
	}
	return in[min(int(p*float64(len(in))), len(in)-1)].Seconds() * 1000
}

// told returns what a sender said of itself in a time.
func (r *record) told(flow int, from, to time.Duration) []state {
	r.mu.Lock()
	defer r.mu.Unlock()
	var in []state
	for _, s := range r.states[flow] {
		at := r.scene.flows[flow].from + time.Duration(s.AtMS)*time.Millisecond
		if at >= from && at < to {
			in = append(in, s)
		}
	}
	return in
}

// target is the median of what a sender aims at, in milliseconds; 0 unknown.
func (r *record) target(flow int, from, to time.Duration) float64 {
	var all []float64
	for _, s := range r.told(flow, from, to) {
		all = append(all, s.Target)
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// jain is Jain's index over what flows had.
func (r *record) jain(from, to time.Duration, flows ...int) float64 {
	sum, squares := 0.0, 0.0
	for _, i := range flows {
		v := r.rate(from, to, i)
		sum += v
		squares += v * v
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(flows)) * squares)
}

// until is how long after a moment a flow's share of the line, over window, is first as wanted; limit when it never is.
func (r *record) until(from, limit, window time.Duration, flow int, wanted func(share float64) bool) time.Duration {
	for t := window; t <= limit; t += step / 2 {
		if wanted(r.used(from+t-window, from+t, flow)) {
			return t
		}
	}
	return limit
}

// say writes a line a flow and phase, for people.
func (r *record) say(w io.Writer) {
	marks := []time.Duration{0, r.scene.length}
	for _, f := range r.scene.flows {
		marks = append(marks, f.from)
		if f.to > 0 {
			marks = append(marks, f.to)
		}
	}
	slices.Sort(marks)
	marks = slices.Compact(marks)
	for i := 1; i < len(marks); i++ {
		from, to := marks[i-1], marks[i]
		fmt.Fprintf(w, "    %3.0f–%3.0f s:", from.Seconds(), to.Seconds())
		for j, f := range r.scene.flows {
			if used := r.used(from, to, j); used > 0.0005 {
				fmt.Fprintf(w, " %s %.1f %%", f.kind, 100*used)
			}
			if told := r.told(j, from, to); len(told) > 0 {
				s := told[len(told)-1]
				fmt.Fprintf(w, " (%s, window %d, flight %d, base %.1f, q %.1f, target %.1f, rtt %.1f, slowdowns %d, lost %d, timeouts %d)",
					s.Law, s.Window, s.Flight, s.Base, s.Queuing, s.Target, s.RTT, s.Slowdowns, s.Losses, s.Timeouts)
			}
		}
		fmt.Fprintf(w, ", added %.0f / %.0f ms (p50 / p95), dropped %.2f %%\n",
			r.addedP(0.5, from, to), r.addedP(0.95, from, to), 100*r.dropped(from, to))
	}
}
