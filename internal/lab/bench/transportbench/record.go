package transportbench

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// step is how often the counters are read.
const step = 100 * time.Millisecond

// record is what was seen of a scene, from outside: the lab's counters behind the bottleneck and the witness's round
// trips. What senders say of themselves is kept beside it.
type record struct {
	scene scene
	begun time.Time

	counted
	echoes
	standings

	cpu [][]spent // by flow: when one began or ended

	mu     sync.Mutex
	states [][]state   // guarded by mu; by flow
	bursts [][]arrival // guarded by mu; by flow
}

// spent is what the processes of a flow had used at a moment, in seconds.
type spent struct {
	at      time.Duration
	seconds float64
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
	return &record{
		scene: s, counted: counted{line: s.line, flows: s.flows, sent: make([][]uint64, n)},
		cpu: make([][]spent, n), states: make([][]state, n), bursts: make([][]arrival, n),
	}
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
