package netcheck

import (
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/netstat"
)

// series is what one connection had received at times, in order.
type series []netstat.Count

// received is one connection's.
type received struct {
	series
	heard time.Duration // when the server last measured it, from the start of the test
	ended bool
}

// at is what it had at a time: between its measurements by their line, before the first and after the last those.
func (s series) at(us int64) int64 {
	if len(s) == 0 {
		return 0
	}
	i, exact := slices.BinarySearchFunc(s, us, func(c netstat.Count, us int64) int { return int(c.Elapsed - us) })
	switch {
	case exact || i == 0:
		return s[i].Bytes
	case i == len(s):
		return s[i-1].Bytes
	}
	a, b := s[i-1], s[i]
	return a.Bytes + (b.Bytes-a.Bytes)*(us-a.Elapsed)/(b.Elapsed-a.Elapsed)
}

// together is the sum of connections that were measured at times of their own, at all those times until the first that goes on has no
// further measurement. One that has ended keeps what it had.
func together(all []received) (sum []netstat.Count) {
	var times []int64
	living, ended := int64(-1), int64(0)
	for _, s := range all {
		if len(s.series) == 0 {
			continue
		}
		switch last := s.series[len(s.series)-1].Elapsed; {
		case s.ended:
			ended = max(ended, last)
		case living < 0 || last < living:
			living = last
		}
		for _, c := range s.series {
			times = append(times, c.Elapsed)
		}
	}
	end := living
	if living < 0 {
		end = ended
	}
	slices.Sort(times)
	for _, t := range slices.Compact(times) {
		if t > end {
			break
		}
		c := netstat.Count{Elapsed: t}
		for _, s := range all {
			c.Bytes += s.at(t)
		}
		sum = append(sum, c)
	}
	return sum
}
