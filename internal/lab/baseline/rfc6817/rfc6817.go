// Package rfc6817 is the controller of RFC 6817 (LEDBAT as first published) behind the interface of package ledbat: the
// yardstick of the simulated link and of the bench. Nothing that is served to viewers uses it.
//
// It has the RFC's allowed values: a target of 100 ms whatever the path, a gain of 1, an initial window of two packets,
// and a window halved at most once per round trip for a loss.
package rfc6817

import "github.com/leeway-video/leeway/internal/ledbat"

const (
	target    = 100_000 // µs: TARGET, its upper bound in the RFC
	minWindow = 2 * ledbat.Packet
)

type controller struct {
	window, credit int64
	lossAt         int64
	lost           bool
}

// NewController fits ledbat.Config: the host has the controller, links have no caps.
func NewController(host bool) ledbat.Controller {
	if !host {
		return nil
	}
	return &controller{window: minWindow}
}

func (c *controller) Window() int64       { return c.window }
func (c *controller) State() ledbat.State { return ledbat.Avoidance }
func (c *controller) Slowdowns() int64    { return 0 }

// OnAck: cwnd += GAIN × off_target × bytes_newly_acked × MSS / cwnd.
func (c *controller) OnAck(s ledbat.Signal) {
	off := max(target-s.Queuing, -target)
	if off > 0 && !s.Limited {
		return
	}
	c.credit += off * ledbat.Packet / target * min(s.Acked, c.window)
	step := c.credit / c.window
	c.credit -= step * c.window
	c.set(c.window + step)
}

func (c *controller) OnLoss(s ledbat.Signal) {
	if c.lost && s.Now-c.lossAt < s.RTT {
		return
	}
	c.lost, c.lossAt = true, s.Now
	c.set(c.window / 2)
}

func (c *controller) OnTimeout(ledbat.Signal) { c.window = minWindow }
func (c *controller) OnIdle(ledbat.Signal)    {}

func (c *controller) set(w int64) { c.window = min(max(w, minWindow), ledbat.MaxWindow) }
