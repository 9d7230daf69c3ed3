package emulator

import "time"

// Bounds of the lateness histogram's buckets; the last bucket holds what is later than all of them.
var Bounds = [...]time.Duration{
	20 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond, 200 * time.Microsecond,
	500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond,
}

// Histogram counts durations by Bounds.
type Histogram struct {
	Buckets [len(Bounds) + 1]uint64
	Max     time.Duration // since the last mark
}

func (h *Histogram) add(d time.Duration) {
	h.Max = max(h.Max, d)
	for i, b := range Bounds {
		if d <= b {
			h.Buckets[i]++
			return
		}
	}
	h.Buckets[len(Bounds)]++
}

// Count returns how many durations there are.
func (h Histogram) Count() (n uint64) {
	for _, b := range h.Buckets {
		n += b
	}
	return n
}

// Above returns how many are longer than d, which must be one of Bounds.
func (h Histogram) Above(d time.Duration) (n uint64) {
	for i := range h.Buckets {
		if i == len(Bounds) || Bounds[i] > d {
			n += h.Buckets[i]
		}
	}
	return n
}

// Quantile returns a bound that the share q of all durations does not exceed: the upper end of a bucket, or Max.
func (h Histogram) Quantile(q float64) time.Duration {
	rank, seen := q*float64(h.Count()), 0.0
	for i, b := range Bounds {
		if seen += float64(h.Buckets[i]); seen >= rank {
			return min(b, h.Max)
		}
	}
	return h.Max
}

// Since returns what was counted after an earlier state of the same histogram.
func (h Histogram) Since(earlier Histogram) Histogram {
	for i, n := range earlier.Buckets {
		h.Buckets[i] -= n
	}
	return h
}
