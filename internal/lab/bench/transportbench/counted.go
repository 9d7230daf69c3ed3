package transportbench

import (
	"sort"
	"time"

	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// counted is what the lab's counters said behind the bottleneck and at it, at each time of a scene.
type counted struct {
	line  netlab.Link
	flows []flow
	times []time.Duration
	sent  [][]uint64 // by flow: IP bytes behind the bottleneck

	packets, drops []uint64 // that came to the bottleneck, that found no room there
}

// look takes down the counters of one moment.
func (c *counted) look(now time.Duration, report netlab.Report) {
	c.times = append(c.times, now)
	for i, f := range c.flows {
		sum := uint64(0)
		for k := range max(f.peers, 1) {
			sum += report.Directions["right→"+farName(i, k)].Bytes
		}
		if f.reverse {
			sum = report.Directions["left→"+nearName(i, 0)].Bytes
		}
		c.sent[i] = append(c.sent[i], sum)
	}
	line := report.Directions["left→right"]
	c.packets = append(c.packets, line.Packets)
	c.drops = append(c.drops, line.QueueDrops)
}

// at interpolates a counter.
func (c *counted) at(counter []uint64, when time.Duration) float64 {
	i := sort.Search(len(c.times), func(i int) bool { return c.times[i] >= when })
	switch {
	case i == 0:
		return float64(counter[0])
	case i == len(c.times):
		return float64(counter[i-1])
	}
	part := float64(when-c.times[i-1]) / float64(c.times[i]-c.times[i-1])
	return float64(counter[i-1]) + part*float64(counter[i]-counter[i-1])
}

// rate is what flows had together behind the bottleneck, bits per second of IP packets. Flows are counted from 0.
func (c *counted) rate(from, to time.Duration, flows ...int) float64 {
	sum := 0.0
	for _, i := range flows {
		sum += c.at(c.sent[i], to) - c.at(c.sent[i], from)
	}
	return sum * 8 / (to - from).Seconds()
}

// used is the share of the line that flows had.
func (c *counted) used(from, to time.Duration, flows ...int) float64 {
	return c.rate(from, to, flows...) / float64(c.line.Rate)
}

// dropped is the share of the packets that found no room in the queue, all of which are sent again.
func (c *counted) dropped(from, to time.Duration) float64 {
	packets := c.at(c.packets, to) - c.at(c.packets, from)
	if packets == 0 {
		return 0
	}
	return (c.at(c.drops, to) - c.at(c.drops, from)) / packets
}

// jain is Jain's index over what flows had.
func (c *counted) jain(from, to time.Duration, flows ...int) float64 {
	sum, squares := 0.0, 0.0
	for _, i := range flows {
		v := c.rate(from, to, i)
		sum += v
		squares += v * v
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(flows)) * squares)
}

// until is how long after a moment a flow's share of the line, over window, is first as wanted; limit when it never is.
func (c *counted) until(from, limit, window time.Duration, flow int, wanted func(share float64) bool) time.Duration {
	for t := window; t <= limit; t += step / 2 {
		if wanted(c.used(from+t-window, from+t, flow)) {
			return t
		}
	}
	return limit
}
