package ledbat

// tolerance is how much of the target a sending host bears: a third of the base, and less the farther the host was pushed back
// lately.
type tolerance struct {
	peak, before int64 // largest windows of the current time and of the one before
	since        int64 // when the current one began
}

// of gives the target for a signal to a controller with that window.
func (t *tolerance) of(s Signal, window int64) int64 {
	if s.Now-t.since >= recallTime {
		t.before, t.peak, t.since = t.peak, 0, s.Now
	}
	t.peak = max(t.peak, window)
	most := max(t.peak, t.before)
	target := min(s.Target, max(s.Base/3, smoothTarget))
	// At the window that just fills the line the queue is gone. A host that is pushed back to there need not share the line.
	part := target * window / most * (s.Base + target) / max(1, s.Base) * 6 / 5
	return min(target, max(part, leastTarget, leastPackets*Packet*s.RTT/most))
}
