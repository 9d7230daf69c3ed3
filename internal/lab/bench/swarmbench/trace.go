package swarmbench

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Line is a viewer's access line.
type Line struct {
	Name     string
	Down, Up int64         // bits per second
	RTT      time.Duration // to the servers, without queues
}

// The access lines of the trace, and the share of viewers behind each. RTTs of the faster two are what such lines have
// to a server in the same country.
var lines = []struct {
	Line
	share float64
}{
	{Line{"5/1", 5_000_000, 1_000_000, 60 * time.Millisecond}, 0.3},
	{Line{"20/5", 20_000_000, 5_000_000, 30 * time.Millisecond}, 0.4},
	{Line{"100/40", 100_000_000, 40_000_000, 15 * time.Millisecond}, 0.3},
}

// Shares of viewers that seek once, and that leave before the end.
const (
	seekShare  = 0.3
	leaveShare = 0.2
)

// Plan is what one viewer does.
type Plan struct {
	Arrive time.Duration // after the start of the run
	Line   Line
	// SeekAfter is when the viewer seeks to SeekTo, in time of watching; 0: never.
	SeekAfter, SeekTo time.Duration
	// LeaveAfter is when the viewer leaves, in time of watching; 0: at the end of the film.
	LeaveAfter time.Duration
	Browser    bool // played by Chromium, with default flags
	Firefox    bool // the browser is Firefox
	Dies       bool // it leaves as a machine that loses its power, without a word
	// Busy is the share of the time in which a browser's page has other things to do.
	Busy     float64
	Pollutes string // how, see pollutions; empty: it does not
	// DownloadFor is how long another program on the viewer's machine downloads something, DownloadAfter its arrival; 0: none does.
	DownloadAfter, DownloadFor time.Duration
}

// mark tells a viewer's kind in a table: c for Chromium, f for Firefox, x for a polluter.
func (p Plan) mark() string {
	switch {
	case p.Firefox:
		return "f"
	case p.Browser:
		return "c"
	case p.Pollutes != "":
		return "x"
	}
	return ""
}

// Trace plans n viewers of a film, in the order of their arrival. The same seed gives the same plan.
//
// Arrivals are a Poisson process over within, given that n came: n independent uniform times, sorted. Lines, seeks and
// leaves have exact shares (rounded), dealt at random: with thirty viewers, drawing each would make runs differ by their
// mix of lines more than by anything that is measured.
func Trace(seed uint64, n int, film, within time.Duration, browsers int) []Plan {
	r := rand.New(rand.NewPCG(seed, 0x6c656577617900))
	between := func(low, high float64, d time.Duration) time.Duration {
		return time.Duration((low + (high-low)*r.Float64()) * float64(d)).Round(time.Millisecond)
	}
	plans := make([]Plan, n)
	for i := range plans {
		plans[i].Arrive = between(0, 1, within)
	}
	slices.SortFunc(plans, func(a, b Plan) int { return int(a.Arrive - b.Arrive) })
	order := r.Perm(n)
	next := 0
	for i, l := range lines {
		upTo := n
		if i < len(lines)-1 {
			upTo = next + share(l.share, n)
		}
		for ; next < upTo; next++ {
			plans[order[next]].Line = l.Line
		}
	}
	for _, i := range r.Perm(n)[:share(seekShare, n)] {
		plans[i].SeekAfter, plans[i].SeekTo = between(0.05, 0.5, film), between(0, 0.8, film)
	}
	for _, i := range r.Perm(n)[:share(leaveShare, n)] {
		plans[i].LeaveAfter = between(0.1, 0.9, film)
	}
	// Browsers stay for the whole film, so that what they show covers all of it.
	for _, i := range r.Perm(n) {
		if browsers > 0 && plans[i].SeekAfter == 0 && plans[i].LeaveAfter == 0 {
			plans[i].Browser = true
			browsers--
		}
	}
	return plans
}

// pollute turns a share of the viewers into polluters, of each kind as many. The first two viewers stay what they are:
// a swarm begins with a viewer that has something.
func pollute(plans []Plan, seed uint64, part float64) {
	r := rand.New(rand.NewPCG(seed, 0x706f6c6c757465))
	const first = 2
	for i, k := range r.Perm(len(plans) - first)[:share(part, len(plans))] {
		plans[k+first].Pollutes = pollutions[i%len(pollutions)]
	}
}

func share(of float64, n int) int { return int(of*float64(n) + 0.5) }
