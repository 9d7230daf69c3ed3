package netstat

import "sort"

// Arrival is one message as its receiver saw it.
type Arrival struct {
	Sequence int64
	Sent     int64 // µs, the sender's clock
	Received int64 // µs, the receiver's clock
}

// Record is a stream of messages: how many were sent, and the arrivals in order. Memory follows Sent, which the caller bounds.
type Record struct {
	Sent     int64 // sequence numbers are 0 to Sent − 1
	Arrivals []Arrival
}

// Period is a run of lost messages.
type Period struct {
	First  int64 // sequence number
	Length int64
}

// Late is a message that arrived reordered (RFC 4737).
type Late struct {
	Sequence int64
	Extent   int64 // arrivals since the first one with a larger number
	Time     int64 // µs since that one
	Before   int64 // arrivals directly before it that all have larger numbers: its n-reordering
}

// Pattern is what a record says of loss and order.
type Pattern struct {
	Sent       int64
	Lost       int64
	Duplicates int64
	Foreign    int64
	Distances  []int64 // RFC 3357, one for each lost message; the first is 0
	Periods    []Period
	Reordered  []Late // in order of arrival

	first []Arrival // arrivals, each message once
}

// Pattern reads a record.
func (r Record) Pattern() Pattern {
	p := Pattern{Sent: max(0, r.Sent)}
	came := make([]bool, p.Sent)
	for _, a := range r.Arrivals {
		switch {
		case a.Sequence < 0 || a.Sequence >= p.Sent:
			p.Foreign++
		case came[a.Sequence]:
			p.Duplicates++
		default:
			came[a.Sequence] = true
			p.first = append(p.first, a)
		}
	}
	last := int64(-1) // lost
	for n, ok := range came {
		if ok {
			continue
		}
		seq := int64(n)
		p.Lost++
		switch {
		case last < 0:
			p.Distances = append(p.Distances, 0)
		default:
			p.Distances = append(p.Distances, seq-last)
		}
		if last >= 0 && last == seq-1 {
			p.Periods[len(p.Periods)-1].Length++
		} else {
			p.Periods = append(p.Periods, Period{First: seq, Length: 1})
		}
		last = seq
	}
	p.reorder()
	return p
}

// reorder finds the arrivals that came after larger numbers, each in less than linear time: records are what another party says.
func (p *Pattern) reorder() {
	largest := make([]int64, len(p.first)) // so far, with each arrival
	var smaller []int                      // places of arrivals, each with a smaller number than all between it and the next
	for i, a := range p.first {
		for len(smaller) > 0 && p.first[smaller[len(smaller)-1]].Sequence > a.Sequence {
			smaller = smaller[:len(smaller)-1]
		}
		below := -1
		if len(smaller) > 0 {
			below = smaller[len(smaller)-1]
		}
		smaller = append(smaller, i)
		if i == 0 || a.Sequence > largest[i-1] {
			largest[i] = a.Sequence
			continue
		}
		largest[i] = largest[i-1]
		j := sort.Search(i, func(k int) bool { return largest[k] > a.Sequence })
		p.Reordered = append(p.Reordered, Late{
			Sequence: a.Sequence, Extent: int64(i - j), Time: a.Received - p.first[j].Received, Before: int64(i - below - 1),
		})
	}
}

// Ratio is lost by sent; 0 of nothing sent.
func (p Pattern) Ratio() float64 { return by(p.Lost, p.Sent) }

// Extent is the largest extent of reordering.
func (p Pattern) Extent() (most int64) {
	for _, l := range p.Reordered {
		most = max(most, l.Extent)
	}
	return most
}

// LongestPeriod is the length of the longest loss period.
func (p Pattern) LongestPeriod() (most int64) {
	for _, l := range p.Periods {
		most = max(most, l.Length)
	}
	return most
}

// LeastDistance is the smallest distance between two losses; 0 with fewer than two.
func (p Pattern) LeastDistance() (least int64) {
	for _, d := range p.Distances {
		if d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	return least
}

// Figures are those of one direction.
func (p Pattern) Figures(d Direction) []Figure {
	if p.Sent == 0 {
		return nil
	}
	all := []Figure{
		Loss.Of(d, p.Ratio()), LossPeriod.Of(d, float64(p.LongestPeriod())), Duplicates.Of(d, by(p.Duplicates, p.Sent)),
		Reordered.Of(d, by(int64(len(p.Reordered)), p.Sent)), ReorderExtent.Of(d, float64(p.Extent())),
	}
	if p.Lost > 1 {
		all = append(all, LossDistance.Of(d, float64(p.LeastDistance())))
	}
	if len(p.first) > 1 {
		all = append(all, Jitter.Of(d, p.Jitter()/1e6), DelayRange.Of(d, seconds(p.DelayRange())))
	}
	return all
}

func by(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}
