package ledbat_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/testkit/spec"
	"github.com/leeway-video/leeway/internal/wire/quality"
)

const aboutWithin = "Vectors of spec/probe.md, Load that gives way: what the controller of a load does. Read by the Go and the TypeScript tests. Each step is an ack: " +
	"moment (µs), bytes acknowledged, q, T, base, RTT (µs), whether the window is what limits (0, 1); and then state (0 slow-start, 1 avoidance, 2 slowdown, 3 ramp), window, slowdowns."

// heard is an ack, and what the controller is afterwards.
type heard [10]int64

type withinCase struct {
	Name  string  `json:"name"`
	Why   string  `json:"why"`
	Steps []heard `json:"steps"`
}

// load is a controller of a load on a line of its own: each ack is of two packets, and the window is always full.
type load struct {
	c     ledbat.Controller
	base  int64 // µs
	rate  int64 // bytes/s
	now   int64
	steps []heard
}

func newLoad(base, rate int64) *load {
	return &load{c: ledbat.HostWithin(quality.LeastTarget, quality.MostTarget)(true), base: base, rate: rate, now: 1}
}

// hear has so much time pass; others is what others have in the queue meanwhile, µs.
func (l *load) hear(time, others int64) {
	for until := l.now + time; l.now < until; {
		own := max(0, l.c.Window()-l.rate*l.base/1_000_000) * 1_000_000 / l.rate
		q := own + others
		l.now += max(1, (l.base+q)*2*ledbat.Packet/l.c.Window())
		l.ack(q)
	}
}

func (l *load) ack(q int64) {
	target := min(max(l.base/2, 15_000), 60_000)
	l.c.OnAck(ledbat.Signal{Now: l.now, Acked: 2 * ledbat.Packet, Queuing: q, Target: target, Base: l.base, RTT: l.base + q, Limited: true, Parts: 1})
	l.steps = append(l.steps, heard{l.now, 2 * ledbat.Packet, q, target, l.base, l.base + q, 1, stateNumber[l.c.State()], l.c.Window(), l.c.Slowdowns()})
}

// until has acks come until the controller is in a state.
func (l *load) until(state ledbat.State, others int64) {
	for range 100_000 {
		if l.c.State() == state {
			return
		}
		l.hear(1, others)
	}
}

// withinScripts make the vectors.
var withinScripts = []struct {
	name, why string
	play      func() *load
}{
	{"an empty line", "Nothing stands while the load's own queue drains: slowdowns and ramps as without the rule.", func() *load {
		l := newLoad(10_000, 1_250_000)
		l.hear(1_500_000, 0)
		return l
	}},
	{"a queue of others", "It stands at the end of the first slowdown. The window falls, until it has been gone for as long as it was seen; then the way back.", func() *load {
		l := newLoad(20_000, 1_250_000)
		l.hear(1_200_000, 6_000)
		l.hear(1_500_000, 0)
		return l
	}},
	{"one look that is wrong", "A program that waited for a processor takes that for a queue: the next ack says that there is none.", func() *load {
		l := newLoad(10_000, 1_250_000)
		l.until(ledbat.Slowdown, 0)
		for l.c.State() == ledbat.Slowdown {
			l.hear(1, 4_000)
		}
		l.hear(300_000, 0)
		return l
	}},
	{"a queue that comes and goes", "It is not gone for as long as it was seen.", func() *load {
		l := newLoad(20_000, 1_250_000)
		for range 3 {
			l.hear(500_000, 5_000)
			l.hear(250_000, 500)
		}
		return l
	}},
	{"a base that falls", "What the load began beside was a queue. It is taken to have been there for long.", func() *load {
		l := newLoad(20_000, 1_250_000)
		l.hear(200_000, 0)
		l.base = 16_000
		l.hear(1_000_000, 500)
		l.hear(500_000, 3_000)
		l.hear(2_200_000, 0)
		return l
	}},
	{"a base that is found", "It falls while the load begins, and later by less than what is taken for a queue: nothing is held.", func() *load {
		l := newLoad(20_000, 1_250_000)
		for range 4 {
			l.hear(1, 0)
			l.base -= 1_000
		}
		l.hear(100_000, 0)
		l.base -= 1_500
		l.hear(200_000, 0)
		return l
	}},
	{"two seconds are enough", "Others were there for five.", func() *load {
		l := newLoad(50_000, 625_000)
		l.hear(5_500_000, 9_000)
		l.hear(2_600_000, 0)
		return l
	}},
	{"a packet is no queue", "On a slow line a packet takes longer than what is taken for others'.", func() *load {
		l := newLoad(30_000, 125_000)
		l.hear(4_000_000, 4_000)
		return l
	}},
}

// TestLoadVectors: the vectors are what the controller does, and the scripts of the vectors end as they say.
func TestLoadVectors(t *testing.T) {
	var played []withinCase
	for _, s := range withinScripts {
		played = append(played, withinCase{s.name, s.why, s.play().steps})
	}
	if *spec.Update {
		writeWithin(t, played)
	}
	file := spec.Vectors[struct {
		Cases []withinCase `json:"cases"`
	}](t, "gives-way.json")
	if len(file.Cases) != len(played) {
		t.Fatalf("%d cases", len(file.Cases))
	}
	for i, c := range file.Cases {
		if fmt.Sprint(c) != fmt.Sprint(played[i]) {
			t.Errorf("%s: what is played is not what is written", c.Name)
		}
	}
}

// writeWithin writes an ack a line.
func writeWithin(t *testing.T, cases []withinCase) {
	var out bytes.Buffer
	about, _ := json.Marshal(aboutWithin)
	fmt.Fprintf(&out, "{\n  \"about\": %s,\n  \"cases\": [\n", about)
	for i, c := range cases {
		writeCase(&out, c.Name, c.Why, "steps", c.Steps)
		out.WriteString(comma(i, len(cases)) + "\n")
	}
	out.WriteString("  ]\n}\n")
	spec.Write(t, "gives-way.json", out.Bytes())
}

// TestALoadHoldsBesideOthersQueues: what it does at the ends of the scripts.
func TestALoadHoldsBesideOthersQueues(t *testing.T) {
	l := newLoad(20_000, 1_250_000)
	l.hear(1_000_000, 6_000)
	if w := l.c.Window(); w > ledbat.Packet {
		t.Errorf("a second beside others' queue it has a window of %d", w)
	}
	l.hear(500_000, 0)
	if w := l.c.Window(); w > 2*ledbat.Packet {
		t.Errorf("their queue has been gone for half of the time, and its window is %d", w)
	}
	l.hear(1_000_000, 0)
	if w := l.c.Window(); w < 25_000 { // what the line takes in a round trip
		t.Errorf("their queue is gone, and its window is %d", w)
	}
	began := newLoad(20_000, 1_250_000)
	began.hear(200_000, 0)
	began.base = 16_000 // there was a queue of 4 ms before it
	began.hear(1_500_000, 500)
	if w := began.c.Window(); w > 2*ledbat.Packet {
		t.Errorf("the base has fallen, and its window is %d", w)
	}
	if began.hear(600_000, 500); began.c.Window() < 20_000 {
		t.Errorf("no queue for two seconds, and its window is %d", began.c.Window())
	}
	noisy := newLoad(10_000, 1_250_000)
	noisy.until(ledbat.Slowdown, 0)
	for noisy.c.State() == ledbat.Slowdown {
		noisy.hear(1, 4_000)
	}
	if noisy.c.Window() > 2*ledbat.Packet {
		t.Error("it does not look again")
	}
	noisy.hear(100_000, 0)
	if w := noisy.c.Window(); w < 12_000 {
		t.Errorf("100 ms after one wrong look its window is %d", w)
	}
	slow := newLoad(30_000, 125_000)
	slow.hear(4_000_000, 4_000)
	if w := slow.c.Window(); w < 2*ledbat.Packet {
		t.Errorf("it takes less than a packet's time for a queue: window %d", w)
	}
}
