// Package rfc6817 is the law of RFC 6817 (LEDBAT as first published) behind the interface of package ledbat: the
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

type law struct {
	window, credit int64
	lossAt         int64
	lost           bool
}

// Law fits ledbat.Config: the host has the law, links have no caps.
func Law(host bool) ledbat.Law {
	if !host {
		return nil
	}
	return &law{window: minWindow}
}

func (l *law) Window() int64       { return l.window }
func (l *law) State() ledbat.State { return ledbat.Avoidance }
func (l *law) Slowdowns() int64    { return 0 }

// OnAck: cwnd += GAIN × off_target × bytes_newly_acked × MSS / cwnd.
func (l *law) OnAck(s ledbat.Signal) {
	off := max(target-s.Queuing, -target)
	if off > 0 && !s.Limited {
		return
	}
	l.credit += off * ledbat.Packet / target * min(s.Acked, l.window)
	step := l.credit / l.window
	l.credit -= step * l.window
	l.set(l.window + step)
}

func (l *law) OnLoss(s ledbat.Signal) {
	if l.lost && s.Now-l.lossAt < s.RTT {
		return
	}
	l.lost, l.lossAt = true, s.Now
	l.set(l.window / 2)
}

func (l *law) OnTimeout(ledbat.Signal) { l.window = minWindow }
func (l *law) OnIdle(ledbat.Signal)    {}

func (l *law) set(w int64) { l.window = min(max(w, minWindow), ledbat.MaxWindow) }
