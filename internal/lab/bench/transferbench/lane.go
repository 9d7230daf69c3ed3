package transferbench

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// laneRun is long enough for the controller to fill the line for most of it.
const (
	laneWarm = 5 * time.Second
	laneRun  = 10 * time.Second
)

// lanes compares the background lane with the foreground on a line that both can fill: what giving way costs, in time of
// processors and in goodput, where there is no flow to give way to. A goal for processors is set where there are many bytes: on
// 10 Mbit/s an end is asleep nineteen twentieths of the time in either lane, and messages and acks are what wakes it.
func lanes() []bench.Case {
	cost := bench.Figure{Name: "cpu_vs_foreground"}
	pions := between{foreground: kindLink, background: kindLane}
	slow := pions.compare(path{name: "lane/10mbit", rate: 10_000_000, delay: 20 * time.Millisecond, peers: 1}, cost)
	slow.Extra = true
	cost.Goal = "<= 1.1"
	list := []bench.Case{pions.compare(path{name: "lane", delay: 20 * time.Millisecond, peers: 1}, cost), slow}
	pages := between{foreground: kindPage, background: kindPageLane, law: kindPageLaw}
	for _, rate := range []int64{5, 20} {
		c := pages.compare(path{name: fmt.Sprintf("lane/chromium-%dmbit", rate), rate: rate * mega, delay: 20 * time.Millisecond, peers: 1}, cost)
		c.Extra, c.Needs = true, demopage.MissingEnd
		list = append(list, c)
	}
	return list
}

// between is what ends are compared: in the foreground, in the background, and, if there is such a kind, in the foreground
// as viewers send it, which is under the controller of the background.
//
// Processor time swings with what else a machine does; how often threads are woken for the same bytes does so less.
type between struct{ foreground, background, law string }

// compare is the case of one path.
func (b between) compare(over path, cost bench.Figure) bench.Case {
	c := bench.Case{
		Name: over.name, About: "One link in the background lane and in the foreground, each alone, over " + over.about(),
		Figures: []bench.Figure{
			{Name: "goodput", Unit: "Mbit/s"}, {Name: "goodput_foreground", Unit: "Mbit/s"}, {Name: "goodput_vs_foreground", Goal: ">= 0.9"},
			{Name: "cpu", Unit: "s/GB"}, {Name: "cpu_foreground", Unit: "s/GB"}, cost,
		},
	}
	kinds := []string{b.background, b.foreground}
	if b.law != "" {
		kinds = append(kinds, b.law)
		c.Figures = append(c.Figures, bench.Figure{Name: "goodput_law", Unit: "Mbit/s"}, bench.Figure{Name: "cpu_law", Unit: "s/GB"},
			bench.Figure{Name: "cpu_law_vs_foreground", Goal: cost.Goal},
			bench.Figure{Name: "wakes", Unit: "/MB"}, bench.Figure{Name: "wakes_foreground", Unit: "/MB"}, bench.Figure{Name: "wakes_law", Unit: "/MB"})
	}
	c.Run = func(ctx context.Context, r *bench.Run) (bench.Sample, error) {
		outcomes := map[string]*outcome{}
		sample := bench.Sample{}
		for i := range kinds {
			l := ours()
			l.kind, l.warm, l.run = kinds[(i+r.Number)%len(kinds)], laneWarm, laneRun
			o, void, err := over.move(ctx, r, l)
			if err != nil {
				return sample, err
			}
			r.Logf("  %s: %.3g Mbit/s, %.1f CPU-s/GB, %.0f wakes/MB%s", l.kind, o.rate*8/mega, o.cpu, o.wakes, o.busiest())
			if void != "" {
				sample.Void = void
			}
			outcomes[l.kind] = o
		}
		sample.Values = b.figures(outcomes)
		return sample, nil
	}
	return c
}

func (b between) figures(outcomes map[string]*outcome) map[string]float64 {
	lane, link := outcomes[b.background], outcomes[b.foreground]
	values := map[string]float64{
		"goodput": lane.rate * 8 / mega, "goodput_foreground": link.rate * 8 / mega, "goodput_vs_foreground": lane.rate / link.rate,
		"cpu": lane.cpu, "cpu_foreground": link.cpu, "cpu_vs_foreground": lane.cpu / link.cpu,
	}
	if law := outcomes[b.law]; law != nil {
		values["goodput_law"], values["cpu_law"], values["cpu_law_vs_foreground"] = law.rate*8/mega, law.cpu, law.cpu/link.cpu
		values["wakes"], values["wakes_foreground"], values["wakes_law"] = lane.wakes, link.wakes, law.wakes
	}
	return values
}

// busiest names the threads that took most.
func (o *outcome) busiest() string {
	text := ""
	for i, end := range []string{"sender", "receiver"} {
		threads := o.threads[i]
		names := slices.SortedFunc(maps.Keys(threads), func(a, b string) int { return cmp.Compare(threads[b], threads[a]) })
		for n, name := range names[:min(len(names), 6)] {
			if n == 0 {
				text += "\n    " + end + ":"
			}
			text += fmt.Sprintf(" %s %.1f", name, threads[name])
		}
	}
	return text
}

// lane is the one that all is asked for in.
func (s *linkStack) lane() peer.Lane {
	if s.setup.Kind == kindLane {
		return peer.Background
	}
	return peer.Foreground
}

// lay sets up the background lane of an end.
func (s *linkStack) lay() {
	if s.lane() == peer.Background {
		s.uploader.Background = background.NewSender(ledbat.Config{}, time.Now)
		s.requester = background.NewRequester(ledbat.Config{}, time.Now)
	}
}

// lay has one link carry it.
func (e *linkEnd) lay() {
	if e.stack.requester != nil {
		e.session.Lane = laneEnd{e}
		e.download.Background(e.Link, e.stack.requester, nil)
	}
}

// laneEnd is the background transport of one end. It satisfies transfer.Lane.
type laneEnd struct{ e *linkEnd }

var (
	_ transfer.Lane      = laneEnd{}
	_ transfer.AckEvents = (*linkEnd)(nil)
)

// BackgroundData implements transfer.Lane.
func (l laneEnd) BackgroundData(b []byte) error { return l.e.download.BackgroundData(b) }

// Ack implements transfer.Lane.
func (l laneEnd) Ack(b []byte) error { return l.e.Upload().Ack(b) }

// Ack implements transfer.AckEvents.
func (e *linkEnd) Ack(b []byte) { e.session.Ack(b) }
