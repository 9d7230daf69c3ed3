package transferbench

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// pathRate is the bottleneck of the emulated paths, bits per second.
const pathRate = 100_000_000

// pathRun is how long a measurement on a path lasts, slow start included.
const pathRun = 10 * time.Second

// path is an emulated path: a sender behind a line, and receivers on the other side of it.
type path struct {
	name  string
	rate  int64         // bits per second; 0 is pathRate
	down  int64         // of the way back to the sender; 0 is pathRate
	delay time.Duration // one way
	loss  float64
	peers int
	goal  string // of goodput_vs_cubic
	thin  bool   // an uplink of a home, with a queue of its own, instead of pathRate and one bandwidth-delay product
}

// What a thin path has.
const (
	thinRate  = 1_000_000
	thinQueue = 32 << 10
)

// line is the bottleneck's rate and queue.
func (p path) line() (rate int64, queue int) {
	if p.thin {
		return thinRate, thinQueue
	}
	rate = cmp.Or(p.rate, pathRate)
	return rate, netlab.BDP(rate, 2*p.delay)
}

var paths = []path{
	{name: "path/25ms", delay: 25 * time.Millisecond, peers: 1, goal: ">= 0.7"},
	{name: "path/50ms", delay: 50 * time.Millisecond, peers: 1, goal: ">= 0.6"},
	{name: "path/25ms-loss", delay: 25 * time.Millisecond, loss: 0.01, peers: 1},
	{name: "path/50ms-loss", delay: 50 * time.Millisecond, loss: 0.01, peers: 1},
	{name: "peers/25ms", delay: 25 * time.Millisecond, peers: 4, goal: ">= 0.9"},
	{name: "peers/50ms", delay: 50 * time.Millisecond, peers: 4, goal: ">= 0.9"},
	{name: "thin/1x30ms", delay: 30 * time.Millisecond, peers: 1, thin: true},
	{name: "thin/1x50ms", delay: 50 * time.Millisecond, peers: 1, thin: true, goal: ">= 0.95"},
	{name: "thin/8x30ms", delay: 30 * time.Millisecond, peers: 8, thin: true},
}

// about describes the path.
func (p path) about() string {
	rate, queue := p.line()
	about := fmt.Sprintf("%d Mbit/s, %d ms one way, %d kB of queue", rate/mega, p.delay.Milliseconds(), queue/1000)
	if p.loss > 0 {
		about += fmt.Sprintf(", %.0f %% loss", 100*p.loss)
	}
	return about + "."
}

func (p path) bench() bench.Case {
	c := bench.Case{Name: p.name, About: fmt.Sprintf("%d link(s) over %s", p.peers, p.about()), Extra: p.thin, Figures: []bench.Figure{
		{Name: "goodput", Unit: "Mbit/s"},
		{Name: "goodput_cubic", Unit: "Mbit/s"},
		{Name: "goodput_vs_cubic", Goal: p.goal},
		{Name: "longest_silence", Unit: "s"},
		{Name: "cpu", Unit: "s/GB"},
	}}
	// Of ours it is between two pieces, and eight links share a thin line that carries eight pieces a second.
	if p.loss == 0 && !(p.thin && p.peers > 1) {
		c.Figures[3].Goal = "< 1"
	}
	if p.rivals() {
		c.Figures = append(c.Figures, bench.Figure{Name: "goodput_default", Unit: "Mbit/s"}, bench.Figure{Name: "goodput_tuned", Unit: "Mbit/s"},
			bench.Figure{Name: "goodput_vs_default"}, bench.Figure{Name: "goodput_vs_tuned"})
	}
	if p.thin {
		for _, name := range []string{"cubic", "tuned", "default"} {
			c.Figures = append(c.Figures, bench.Figure{Name: "longest_silence_" + name, Unit: "s"})
		}
	}
	c.Run = p.run
	return c
}

// rivals says whether bare pion runs beside.
func (p path) rivals() bool { return p.peers == 1 || p.thin }

func (p path) run(ctx context.Context, r *bench.Run) (bench.Sample, error) {
	kinds := []string{kindLink, kindTCP}
	if p.rivals() {
		kinds = append(kinds, kindTuned, kindDefault)
	}
	sample := bench.Sample{Values: map[string]float64{}}
	rates, silences := map[string]float64{}, map[string]float64{}
	for i := range kinds {
		kind := kinds[(i+r.Number)%len(kinds)]
		l := ours()
		l.warm, l.run, l.kind = 0, pathRun, kind
		if kind != kindLink {
			l.channels, l.message = 1, bareMessage
		}
		o, void, err := p.move(ctx, r, l)
		if err != nil {
			return sample, err
		}
		r.Logf("  %s: %.3g Mbit/s, %.1f CPU-s/GB, longest silence %.3f s", kind, o.rate*8/mega, o.cpu, o.silence)
		if void != "" {
			sample.Void = void
		}
		rates[kind], silences[kind] = o.rate, o.silence
		if kind == kindLink {
			sample.Values["longest_silence"], sample.Values["cpu"] = o.silence, o.cpu
			if why := capped(o.buffers); why != "" {
				sample.Void = why
			}
		}
	}
	for kind, name := range map[string]string{kindDefault: "default", kindTuned: "tuned", kindTCP: "cubic"} {
		if rate, ok := rates[kind]; ok {
			sample.Values["goodput_"+name] = rate * 8 / mega
			sample.Values["goodput_vs_"+name] = rates[kindLink] / rate
			if p.thin {
				sample.Values["longest_silence_"+name] = silences[kind]
			}
		}
	}
	sample.Values["goodput"] = rates[kindLink] * 8 / mega
	return sample, nil
}

// move measures l in a lab of its own; void says why the lab does not certify it.
func (p path) move(ctx context.Context, r *bench.Run, l load) (o *outcome, void string, err error) {
	lab, err := netlab.New(netlab.Options{Seed: uint64(r.Number) + 1})
	if err != nil {
		return nil, "", err
	}
	defer lab.Close()
	rate, queue := p.line()
	line := netlab.Link{Rate: rate, Delay: p.delay, Queue: queue, Loss: p.loss}
	core := lab.Router("core")
	back := netlab.Link{Rate: cmp.Or(p.down, pathRate), Delay: p.delay, Queue: max(queue, netlab.BDP(p.down, 2*p.delay))}
	sender, _ := lab.Attach("sender", core, netlab.Path{Up: line, Down: back})
	var to []place
	for i := range p.peers {
		host, _ := lab.Attach(fmt.Sprintf("receiver-%d", i+1), core, netlab.Both(netlab.Link{}))
		to = append(to, in(ctx, host))
	}
	if err := lab.Start(); err != nil {
		return nil, "", err
	}
	if err := lab.Mark(); err != nil {
		return nil, "", err
	}
	if o, err = move(ctx, r, l, in(ctx, sender), to...); err != nil {
		return nil, "", err
	}
	void, err = lab.Void()
	return o, cmp.Or(void, o.void(l.both)), err
}

// void says why nothing is claimed of what was moved: an end got nothing, which both says of the sender as well.
func (o *outcome) void(both bool) string {
	if o.got.Bytes > 0 && (!both || o.sent.Bytes > 0) {
		return ""
	}
	return "an end got nothing: the other one refused what it asked for, since it could not send in time, and an end of a bench asks once"
}

// in is a place inside a lab.
func in(ctx context.Context, h *netlab.Host) place {
	return place{name: h.Name(), addr: h.Addr().String(), command: func(name string, arg ...string) (*exec.Cmd, func() error) {
		c := h.Command(ctx, name, arg...)
		return c.Cmd, c.Start
	}}
}
