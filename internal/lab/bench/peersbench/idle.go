package peersbench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/idlebench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/lab/proc"
	"github.com/leeway-video/leeway/internal/sleep"
)

const (
	idleSettle   = 10 * time.Second // after the last link has opened: the checks of its set-up have ended
	idlePeriod   = 30 * time.Second // several keepalives long
	idleTogether = 10               // links that are set up at a time
)

// idles are the cases of `leeway-lab bench idle`, which has ours in two processes, beside the paper's figures.
func idles() []bench.Case {
	var list []bench.Case
	for _, c := range idlebench.Bench.Cases {
		var n int
		if _, err := fmt.Sscanf(c.Name, "links/%d", &n); err != nil {
			continue
		}
		c.Name, c.Extra, c.Figures = fmt.Sprintf("H3/ours-%d", n), true, slices.Clone(c.Figures)
		for i, f := range c.Figures {
			if f.Name == "rss_bytes_per_link" {
				c.Figures[i].Reference = memoryOf("C-C")
			}
		}
		list = append(list, c)
	}
	return list
}

// memoryOf is the paper's memory of an idle connection, in bytes.
func memoryOf(pair string) *bench.Reference {
	r := papers["H3"].number("memory_kb", pair, pair)
	r.Value *= kilo
	return r
}

// idling is the case of so many idle connections between two ends of a pair that is not ours alone.
func idling(k kinds, n int) bench.Case {
	return bench.Case{
		Name:  fmt.Sprintf("H3/%s-%d", k.name, n),
		About: fmt.Sprintf("%s: memory of the client, and keepalive on its line, of %d idle connections.", k.about, n),
		Needs: k.needs(), Extra: true,
		Figures: []bench.Figure{
			{Name: "rss_bytes_per_link", Unit: "B", Reference: memoryOf(k.besides())},
			{Name: "up_bits_per_second_per_link", Unit: "bit/s", Reference: keepaliveOf("up", k)},
			{Name: "down_bits_per_second_per_link", Unit: "bit/s", Reference: keepaliveOf("down", k)},
		},
		Run: func(ctx context.Context, r *bench.Run) (bench.Sample, error) { return idle(ctx, r, k, n) },
	}
}

func keepaliveOf(way string, k kinds) *bench.Reference {
	r := papers["H3"].number("keepalive_"+way+"_kbit_s", k.besides(), k.besides())
	r.Value *= kilo
	return r
}

// idle measures once. One link more is there than is counted: what a first one brings to a process is not the cost of a link.
func idle(ctx context.Context, r *bench.Run, k kinds, n int) (sample bench.Sample, err error) {
	s, err := build(uint64(r.Number)+1, wide, wlan, pc)
	if err != nil {
		return sample, err
	}
	defer s.lab.Close()
	listener, err := s.listen(ctx)
	if err != nil {
		return sample, err
	}
	places := s.places(ctx)
	ends, err := openSession(ctx, r, k, k.plan(), listener, places[0], places[1])
	if err != nil {
		return sample, err
	}
	defer ends.close()
	toServer := func(int) int { return 1 }
	if _, err := ends.link(ctx, 0, 1, toServer); err != nil {
		return sample, err
	}
	if !sleep.For(ctx, idleSettle) {
		return sample, ctx.Err()
	}
	before, err := ends.resident(ctx)
	if err != nil {
		return sample, err
	}
	for at := 1; at <= n; at += idleTogether {
		if _, err := ends.link(ctx, at, min(idleTogether, n+1-at), toServer); err != nil {
			return sample, err
		}
	}
	if !sleep.For(ctx, idleSettle) {
		return sample, ctx.Err()
	}
	if err := s.lab.Mark(); err != nil {
		return sample, err
	}
	if !sleep.For(ctx, idlePeriod) {
		return sample, ctx.Err()
	}
	report, err := s.lab.Report()
	if err != nil {
		return sample, err
	}
	after, err := ends.resident(ctx)
	if err != nil {
		return sample, err
	}
	if err := report.Certify(); err != nil {
		sample.Void = err.Error()
	}
	each := func(d *netlab.Direction) float64 {
		return float64(report.Directions[d.Name].SentBytes) * 8 / report.Took.Seconds() / float64(n+1)
	}
	sample.Values = map[string]float64{
		"rss_bytes_per_link":            float64(after-before) / float64(n),
		"up_bits_per_second_per_link":   each(s.lines[0].Up),
		"down_bits_per_second_per_link": each(s.lines[0].Down),
	}
	r.Logf("  %d connections: %.0f kB each", n, sample.Values["rss_bytes_per_link"]/kilo)
	return sample, nil
}

// resident is the memory of the client and of what it started, bytes; garbage aside where the client is not a browser.
func (s *session) resident(ctx context.Context) (int64, error) {
	if err := s.ends[client].Send(message{Type: "collect"}); err != nil {
		return 0, err
	}
	if err := s.await(ctx, readyPatience, 1, "the client does not answer", func(e event) bool { return e.Type == "collected" }); err != nil {
		return 0, err
	}
	total := int64(0)
	for _, pid := range proc.Family(s.ends[client].PID()) {
		if bytes, err := proc.Resident(pid); err == nil { // another has ended just now
			total += bytes
		}
	}
	return total, nil
}
