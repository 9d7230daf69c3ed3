package transferbench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
)

// pair is a sender and a receiver, with a browser among them; links are ours at both ends, bare ones have nothing of ours.
type pair struct {
	name     string
	firefox  bool            // the browser, or both, is Firefox, and not Chromium
	from, to string          // kinds of our path
	bare     map[string]ends // baselines, by the name of their figures
	about    string
}

// ends are the kinds of a baseline's two ends.
type ends struct{ from, to string }

var pairs = slices.Concat(pairsOf("Chromium", false), pairsOf("Firefox", true))

// pairsOf are those of a browser.
func pairsOf(browser string, firefox bool) []pair {
	short := strings.ToLower(browser)
	return []pair{
		{
			name: "pion-" + short, firefox: firefox, from: kindLink, to: kindPage, about: "Pion sends to " + browser,
			bare: map[string]ends{"default": {kindDefault, kindBare}, "tuned": {kindTuned, kindBare}},
		},
		{
			name: short + "-pion", firefox: firefox, from: kindPage, to: kindLink, about: browser + " sends to pion",
			bare: map[string]ends{"default": {kindBare, kindDefault}, "tuned": {kindBare, kindTuned}},
		},
		{
			name: short + "-" + short, firefox: firefox, from: kindPage, to: kindPage, about: browser + " sends to " + browser,
			bare: map[string]ends{"bare": {kindBare, kindBare}},
		},
	}
}

// pairPath is where pairs are tried beside loopback.
var pairPath = path{name: "25ms", delay: 25 * time.Millisecond, peers: 1}

// Times of a pair on loopback: a page needs a moment until what it runs often is compiled.
const (
	pairWarm = 2 * time.Second
	pairRun  = 5 * time.Second
)

// browsers are the cases with a browser at one end or both.
func browsers() []bench.Case {
	var list []bench.Case
	for _, p := range pairs {
		list = append(list, p.bench("loopback", "on loopback", "MB/s", p.loopback), p.bench(pairPath.name, "over "+pairPath.about(), "Mbit/s", p.path))
	}
	return list
}

func (p pair) bench(name, over, unit string, run func(context.Context, *bench.Run) (bench.Sample, error)) bench.Case {
	c := bench.Case{
		Name:  p.name + "/" + name,
		About: fmt.Sprintf("%s, one link %s, beside bare data channels between the same.", p.about, over),
		Needs: demopage.MissingEnd, Run: run, Extra: p.firefox,
		Figures: []bench.Figure{{Name: "goodput", Unit: unit}, {Name: "cpu", Unit: "s/GB"}, {Name: "longest_silence", Unit: "s", Goal: "< 1"}},
	}
	if p.firefox {
		c.Needs = demopage.MissingFirefoxEnd
	}
	for _, base := range []string{"default", "tuned", "bare"} {
		if _, ok := p.bare[base]; ok {
			c.Figures = append(c.Figures, bench.Figure{Name: "goodput_" + base, Unit: unit}, bench.Figure{Name: "cpu_" + base, Unit: "s/GB"},
				bench.Figure{Name: "goodput_vs_" + base}, bench.Figure{Name: "cpu_vs_" + base})
		}
	}
	if name == pairPath.name {
		c.Figures = append(c.Figures, bench.Figure{Name: "goodput_cubic", Unit: unit}, bench.Figure{Name: "goodput_vs_cubic"})
	}
	return c
}

// loads are what the pair's figures come from, by name; ours has none.
func (p pair) loads(warm, run time.Duration) map[string]load {
	l := ours()
	l.kind, l.from, l.to, l.firefox, l.warm, l.run = "", p.from, p.to, p.firefox, warm, run
	all := map[string]load{"": l}
	for name, e := range p.bare {
		all[name] = load{from: e.from, to: e.to, firefox: p.firefox, channels: 1, message: bareMessage, links: 1, warm: warm, run: run}
	}
	return all
}

func (p pair) loopback(ctx context.Context, r *bench.Run) (bench.Sample, error) {
	return p.measure(r, p.loads(pairWarm, pairRun), mega, func(l load) (*outcome, string, error) {
		o, err := move(ctx, r, l, here, here)
		return o, "", err
	})
}

func (p pair) path(ctx context.Context, r *bench.Run) (bench.Sample, error) {
	loads := p.loads(0, pathRun)
	loads["cubic"] = load{kind: kindTCP, channels: 1, links: 1, run: pathRun}
	return p.measure(r, loads, mega/8, func(l load) (*outcome, string, error) { return pairPath.move(ctx, r, l) })
}

// measure takes the figures of all loads; goodput is in units of so many bytes per second.
func (p pair) measure(r *bench.Run, loads map[string]load, unit float64, move func(load) (*outcome, string, error)) (bench.Sample, error) {
	sample := bench.Sample{Values: map[string]float64{}}
	names := []string{"", "default", "tuned", "bare", "cubic"}
	outcomes := map[string]*outcome{}
	for i := range names {
		name := names[(i+r.Number)%len(names)] // what warms up or wears off must not favor one of them
		l, ok := loads[name]
		if !ok {
			continue
		}
		o, void, err := move(l)
		if err != nil {
			return sample, err
		}
		if outcomes[name] = o; void != "" {
			sample.Void = void
		}
		r.Logf("  %s%s → %s: %.1f MB/s, %.1f CPU-s/GB, longest silence %.3f s", l.kind, l.from, l.to, o.rate/mega, o.cpu, o.silence)
	}
	own := outcomes[""]
	sample.Values["goodput"], sample.Values["cpu"], sample.Values["longest_silence"] = own.rate/unit, own.cpu, own.silence
	if p.from == kindLink {
		if why := capped(own.buffers); why != "" {
			sample.Void = why
		}
	}
	for name, o := range outcomes {
		if name == "" {
			continue
		}
		sample.Values["goodput_"+name], sample.Values["goodput_vs_"+name] = o.rate/unit, own.rate/o.rate
		if name != "cubic" {
			sample.Values["cpu_"+name], sample.Values["cpu_vs_"+name] = o.cpu, own.cpu/o.cpu
		}
	}
	return sample, nil
}
