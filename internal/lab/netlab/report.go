package netlab

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/lab/netlab/emulator"
	"github.com/leeway-video/leeway/internal/lab/proc"
)

// What a run must keep to for its figures to count. See docs/netlab.md for what follows from them.
const (
	// LateBound is how much later than computed a packet may arrive.
	LateBound = time.Millisecond
	// LateShare of all packets may be later than that.
	LateShare = 0.01
	// IdleShare is how much of the machine's processor time must be left over.
	IdleShare = 0.15
)

// Counters of one direction of a line.
type Counters = emulator.Counters

// Report says what happened in the lab since the mark, and how true to its description the lab was.
type Report struct {
	// Took is the time since the mark.
	Took time.Duration
	// Idle, Steal: shares of the whole machine's processor time that no process used, and that the hypervisor took.
	Idle, Steal float64
	// EmulatorCPU is the emulator's processor time in cores, the receiving half of the kernel's stack included.
	EmulatorCPU float64
	// RealTime says that the emulator had a real-time priority.
	RealTime bool
	// Late: how much later than computed packets were delivered. Rounds: how long the emulator did not look for new
	// packets; one that came meanwhile is taken to have come up to that much later.
	Late, Rounds emulator.Histogram
	// Packets that came out of the lab's devices.
	Packets uint64
	// DeviceDrops were lost between a host and its line, Refused between a line and its host. Neither should happen.
	DeviceDrops, Refused uint64
	// Unrouted packets were for addresses outside the lab.
	Unrouted uint64
	// Directions by Direction.Name. MaxQueueBytes and MaxQueuePackets are since the mark, like everything else, but
	// QueueBytes and Flying are of this moment.
	Directions map[string]Counters
}

// Void says why nothing is claimed from the lab since its last mark; empty is no reason.
func (l *Lab) Void() (string, error) {
	r, err := l.Report()
	if err != nil {
		return "", err
	}
	if err := r.Certify(); err != nil {
		return strings.TrimPrefix(err.Error(), "netlab: "), nil
	}
	return "", nil
}

// mark is the state against which reports are made.
type mark struct {
	cpu   proc.Processors
	stats *emulator.Stats
	drops uint64
}

func (l *Lab) observe(fresh bool) (mark, error) {
	if l.emu == nil {
		return mark{}, errors.New("netlab: not started")
	}
	stats, err := l.emu.Stats(fresh)
	if err != nil {
		return mark{}, fmt.Errorf("netlab: %w", err)
	}
	cpu, err := proc.ReadProcessors()
	if err != nil {
		return mark{}, fmt.Errorf("netlab: %w", err)
	}
	drops, err := l.deviceDrops()
	if err != nil {
		return mark{}, fmt.Errorf("netlab: %w", err)
	}
	return mark{cpu, stats, drops}, nil
}

// Mark begins a measured period; Start has begun the first.
func (l *Lab) Mark() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	m, err := l.observe(true)
	if err == nil {
		l.mark = m
	}
	return err
}

// Report tells about the time since the mark.
func (l *Lab) Report() (Report, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, err := l.observe(false)
	if err != nil {
		return Report{}, err
	}
	then := l.mark
	idle, steal := now.cpu.Since(then.cpu)
	r := Report{
		Took:        now.cpu.At.Sub(then.cpu.At),
		Idle:        idle,
		Steal:       steal,
		RealTime:    now.stats.RealTime,
		Late:        now.stats.Late.Since(then.stats.Late),
		Rounds:      now.stats.Rounds.Since(then.stats.Rounds),
		Packets:     now.stats.Written - then.stats.Written,
		Refused:     now.stats.Refused - then.stats.Refused,
		Unrouted:    now.stats.Unrouted - then.stats.Unrouted,
		DeviceDrops: now.drops - then.drops,
		Directions:  map[string]Counters{},
	}
	r.EmulatorCPU = (now.stats.CPU - then.stats.CPU).Seconds() / r.Took.Seconds()
	for _, line := range l.lines {
		for _, d := range []*Direction{line.Down, line.Up} {
			r.Directions[d.Name] = now.stats.Links[d.index].Since(then.stats.Links[d.index])
		}
	}
	return r, nil
}

// Certify returns nil when the lab was what it was described to be, and otherwise what was off. Figures from a run that
// is not certified say something about the machine and nothing about what was tested.
func (r Report) Certify() error {
	return errors.Join(r.Timing(), r.spare())
}

// Timing is the part of Certify about the lab itself, without the demand that the machine had processor time to spare
// for what ran in the lab.
func (r Report) Timing() error {
	var errs []error
	late := func(h emulator.Histogram, what string) {
		if n, all := h.Above(LateBound), h.Count(); float64(n) > LateShare*float64(all) {
			errs = append(errs, fmt.Errorf("%.1f %% of %d %s took more than %v too long (longest %v), the bound is %.0f %%",
				100*float64(n)/float64(all), all, what, LateBound, h.Max.Round(time.Microsecond), 100*LateShare))
		}
	}
	late(r.Late, "deliveries")
	late(r.Rounds, "rounds of the emulator")
	if r.DeviceDrops > 0 || r.Refused > 0 {
		errs = append(errs, fmt.Errorf("%d packets were lost on the way to a line and %d on the way from it", r.DeviceDrops, r.Refused))
	}
	return uncertified(errs)
}

func (r Report) spare() error {
	var errs []error
	if r.Idle < IdleShare {
		errs = append(errs, fmt.Errorf("the processors were idle %.1f %% of the time, at least %.0f %% are asked for", 100*r.Idle, 100*IdleShare))
	}
	return uncertified(errs)
}

func uncertified(errs []error) error {
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("netlab: not certified: %w", err)
	}
	return nil
}

// String is one line for a log.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v, %d packets, late p50 ≤ %v, p99 ≤ %v, longest %v, over %v: %d; emulator %.2f cores", r.Took.Round(time.Millisecond),
		r.Packets, r.Late.Quantile(0.5), r.Late.Quantile(0.99), r.Late.Max.Round(time.Microsecond), LateBound, r.Late.Above(LateBound), r.EmulatorCPU)
	if !r.RealTime {
		b.WriteString(" without real-time priority")
	}
	fmt.Fprintf(&b, "; machine idle %.0f %%, stolen %.1f %%", 100*r.Idle, 100*r.Steal)
	return b.String()
}

// Counters returns the direction's counters since the lab started.
func (d *Direction) Counters() (Counters, error) {
	if d.lab.emu == nil {
		return Counters{}, fmt.Errorf("netlab: %s: not started", d.Name)
	}
	stats, err := d.lab.emu.Stats(false)
	if err != nil {
		return Counters{}, fmt.Errorf("netlab: %s: %w", d.Name, err)
	}
	return stats.Links[d.index], nil
}

// Ledger returns which packets were lost of those that Link.Ledger names, in the order in which they were sent. Set begins a new one.
func (d *Direction) Ledger() ([]bool, error) {
	if d.lab.emu == nil {
		return nil, fmt.Errorf("netlab: %s: not started", d.Name)
	}
	lost, err := d.lab.emu.Ledger(d.index)
	if err != nil {
		return nil, fmt.Errorf("netlab: %s: %w", d.Name, err)
	}
	return lost, nil
}
