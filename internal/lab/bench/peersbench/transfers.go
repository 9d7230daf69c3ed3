package peersbench

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// What the paper moves: ten files of 100,000 bytes.
const (
	fileBytes  = 100_000
	files      = 10
	totalBytes = files * fileBytes
	// pieceAhead is how many pieces of a segment a client asks each peer for at a time.
	pieceAhead = 8
)

// approach is one way to move the files.
type approach struct {
	figure      string // the name of its figure, ms
	about       string
	servers     int // ends that serve
	connections int // to each
	channels    int // of each connection
	lanes       int // on each connection
	ahead       int
	pieces      bool // the items are the pieces of one segment
}

// approaches are what is tried; most is how many servers the ends at hand can be.
func approaches(k kinds, most int) []approach {
	list := []approach{
		{figure: "a1", about: "one channel, one file after the other", servers: 1, connections: 1, channels: 1, ahead: 1},
		{figure: "a1_ahead", about: "one channel, the next file asked for ahead", servers: 1, connections: 1, channels: 1, ahead: 2},
	}
	for _, n := range []int{2, 5, 10} {
		if m := min(n, k.channels()); m == n || m > 5 {
			list = append(list, approach{figure: fmt.Sprintf("a2_channels_%d", m), about: "channels of one connection", servers: 1, connections: 1, channels: m, ahead: 1})
		}
		list = append(list, approach{figure: fmt.Sprintf("a2_connections_%d", n), about: "connections to one peer", servers: 1, connections: n, channels: 1, ahead: 1})
		if n <= most {
			list = append(list, approach{figure: fmt.Sprintf("a3_%d", n), about: "connections, each to a peer of its own", servers: n, connections: 1, channels: 1, ahead: 1})
		}
	}
	for _, a := range [][2]int{{1, 1}, {1, 2}, {2, 1}, {2, 2}, {5, 2}} {
		if a[0] > most {
			continue
		}
		list = append(list, approach{
			figure: fmt.Sprintf("a4_%dx%d", a[0], a[1]), about: "one segment's pieces over peers × channels",
			servers: a[0], connections: 1, channels: a[1], ahead: pieceAhead, pieces: true,
		})
	}
	for i := range list {
		list[i].lanes = list[i].channels
	}
	if k.fixed() {
		list = slices.DeleteFunc(list, func(a approach) bool { return a.pieces && a.channels != peer.DefaultPlan.Data })
		for i := range list {
			list[i].channels = peer.DefaultPlan.Data
		}
	}
	return list
}

// fixed says whether links have the library's number of channels, whatever is tried.
func (k kinds) fixed() bool { return k.client == kindPage || k.server == kindPage }

// channels is the most that a connection may have: ours are bounded by the protocol.
func (k kinds) channels() int {
	switch {
	case k.fixed():
		return peer.DefaultPlan.Data
	case k.ours():
		return peer.MaxDataChannels
	}
	return files
}

// ours says whether the links are ours.
func (k kinds) ours() bool { return k.client == kindLink || k.client == kindPage }

// job is what the client does. Links are numbered so that link i goes to server 1 + i % servers.
func (a approach) job(ours bool) job {
	j := job{Bytes: totalBytes, Item: fileBytes, Ahead: a.ahead}
	if a.pieces {
		j.Item = peer.PieceSize
	}
	for channel := range a.lanes {
		for link := range a.links() {
			if ours {
				channel = 0 // a link is one lane, and a lane for each of its channels asks for as much at a time
			}
			j.Lanes = append(j.Lanes, lane{link, channel})
		}
	}
	return j
}

func (a approach) links() int { return a.servers * a.connections }

// ideal is how long the payload takes at the line's rate, and nothing else.
func ideal(bytes float64, rate int64) time.Duration {
	return time.Duration(bytes * 8 / float64(rate) * float64(time.Second))
}

// efficiency is the time that what was on the wire takes at the line's rate, and one round trip for the first request, of the time that
// it took.
func efficiency(wire float64, rate int64, rtt, took time.Duration) float64 {
	return (ideal(wire, rate) + rtt).Seconds() / took.Seconds()
}

// moved is one measured transfer.
type moved struct {
	took time.Duration
	wire float64 // bytes that the bottleneck sent
	lost float64 // packets that found its queue full
}

// outcome is what repeated transfers come to.
type outcome struct {
	mean, deviation       float64 // ms
	efficiency, ofPayload float64 // means
	overhead              float64 // bytes on the wire of those of the payload
	drops                 float64 // packets of a transfer
}

func sum(all []moved, rate int64, rtt time.Duration) outcome {
	var o outcome
	var times []float64
	n := float64(len(all))
	for _, t := range all {
		times = append(times, t.took.Seconds()*1000)
		o.efficiency += efficiency(t.wire, rate, rtt, t.took) / n
		o.ofPayload += ideal(totalBytes, rate).Seconds() / t.took.Seconds() / n
		o.overhead += t.wire / totalBytes / n
		o.drops += t.lost / n
	}
	o.mean, o.deviation = spread(times)
	return o
}

// spread returns mean and standard deviation of a sample; the deviation of fewer than two is 0.
func spread(values []float64) (mean, deviation float64) {
	n := float64(len(values))
	if n == 0 {
		return 0, 0
	}
	for _, v := range values {
		mean += v / n
	}
	if n < 2 {
		return mean, 0
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean) / (n - 1)
	}
	return mean, math.Sqrt(deviation)
}

// rates are those that the paper's dummynet had, Mbit/s.
var rates = []int{5, 10, 15}

// transferring is the case of one pair and rate.
func transferring(k kinds, rate, most int) bench.Case {
	c := bench.Case{
		Name: fmt.Sprintf("H5/%s-%dmbit", k.name, rate),
		About: fmt.Sprintf("%s: ten files of 100,000 bytes through %d Mbit/s and a queue of 50 packets, %d ms round trip; payload alone takes %d ms.",
			k.about, rate, trip(wlan, pc).Milliseconds(), ideal(totalBytes, int64(rate)*mega).Milliseconds()),
		Needs: k.needs(), Extra: k.inBrowser(),
		Figures: []bench.Figure{
			{Name: "best_efficiency", Goal: ">= 0.95", Reference: bestOf(rate)}, {Name: "best_ms", Unit: "ms"}, {Name: "best_of_payload", Reference: bestOf(rate)},
			{Name: "payload_ms", Unit: "ms"},
		},
	}
	if !k.ours() {
		c.Figures[0].Goal = "" // a yardstick
	}
	for _, a := range approaches(k, most) {
		c.Figures = append(c.Figures, bench.Figure{Name: a.figure, Unit: "ms", Reference: paperTransfer(k, rate, a.figure)},
			bench.Figure{Name: a.figure + "_sd", Unit: "ms"}, bench.Figure{Name: a.figure + "_efficiency"}, bench.Figure{Name: a.figure + "_overhead"},
			bench.Figure{Name: a.figure + "_drops"})
	}
	c.Run = func(ctx context.Context, r *bench.Run) (bench.Sample, error) {
		return transfers(ctx, r, k, int64(rate)*mega, approaches(k, most))
	}
	return c
}

// transfers measures all approaches once.
func transfers(ctx context.Context, r *bench.Run, k kinds, rate int64, list []approach) (sample bench.Sample, err error) {
	narrow := wlan
	narrow.path.Down = netlab.Link{Rate: rate, Delay: wlan.path.Down.Delay, Queue: slots}
	most := 0
	for _, a := range list {
		most = max(most, a.servers)
	}
	s, err := build(uint64(r.Number)+1, wide, narrow, slices.Repeat([]access{pc}, most)...)
	if err != nil {
		return sample, err
	}
	defer s.lab.Close()
	rtt := trip(narrow, pc)
	sample.Values = map[string]float64{"payload_ms": ideal(totalBytes, rate).Seconds() * 1000}
	for i := range list {
		a := list[(i+r.Number)%len(list)] // what warms up or wears off must not favor one of them
		all, void, err := s.transfer(ctx, r, k, a)
		if err != nil {
			return sample, fmt.Errorf("%s: %w", a.figure, err)
		}
		if void != "" {
			sample.Void = void
		}
		o := sum(all, rate, rtt)
		r.Logf("  %s: %.0f ± %.0f ms, efficiency %.3f, of the payload %.3f, on the wire %.3f of it, %.1f packets dropped",
			a.figure, o.mean, o.deviation, o.efficiency, o.ofPayload, o.overhead, o.drops)
		maps.Copy(sample.Values, map[string]float64{
			a.figure: o.mean, a.figure + "_sd": o.deviation, a.figure + "_efficiency": o.efficiency, a.figure + "_overhead": o.overhead,
			a.figure + "_drops": o.drops,
		})
		// The quickest, and not the one that fills the line best: that may be with what was sent in vain.
		if best, any := sample.Values["best_ms"]; !any || o.mean < best {
			maps.Copy(sample.Values, map[string]float64{
				"best_efficiency": o.efficiency, "best_ms": o.mean, "best_of_payload": o.ofPayload,
			})
		}
	}
	return sample, nil
}

// transfer measures one approach, several times over the same links as the paper does; void says why the lab does not certify it.
func (s *stage) transfer(ctx context.Context, r *bench.Run, k kinds, a approach) (all []moved, void string, err error) {
	listener, err := s.listen(ctx)
	if err != nil {
		return nil, "", err
	}
	places := s.places(ctx)
	ends, err := openSession(ctx, r, k, a.channels, listener, places[0], places[1:1+a.servers]...)
	if err != nil {
		return nil, "", err
	}
	defer ends.close()
	if _, err := ends.link(ctx, 0, a.links(), func(link int) int { return 1 + link%a.servers }); err != nil {
		return nil, "", err
	}
	if err := s.lab.Mark(); err != nil {
		return nil, "", err
	}
	down := s.lines[0].Down
	for range iterations(transferIterations) {
		before, err := down.Counters()
		if err != nil {
			return nil, "", err
		}
		d, err := ends.fetch(ctx, a.job(k.ours()))
		if err != nil {
			return nil, "", err
		}
		after, err := down.Counters()
		if err != nil {
			return nil, "", err
		}
		all = append(all, moved{
			time.Duration(d.MS * float64(time.Millisecond)), float64(after.SentBytes - before.SentBytes), float64(after.QueueDrops - before.QueueDrops),
		})
	}
	void, err = s.lab.Void()
	return all, void, err
}
