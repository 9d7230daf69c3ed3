package background

import "sync/atomic"

// catchUp is how much of the past a cap makes up for, µs: what timers are late by.
const catchUp = 100_000

// uploadCap is the rate that a site allows what a host sends (spec/background-transport.md, "Upload cap").
type uploadCap struct {
	kbps atomic.Int64 // kbit/s; 0: no cap
	next int64        // when a message may go out, µs
}

// sent notes a message of so many bytes.
func (c *uploadCap) sent(now, bytes int64) {
	if kbps := c.kbps.Load(); kbps > 0 {
		c.next = max(c.next, now-catchUp) + bytes*8000/kbps
	}
}

// at is when the next message may go out; in the past: now.
func (c *uploadCap) at() int64 {
	if c.kbps.Load() == 0 {
		return 0
	}
	return c.next
}
