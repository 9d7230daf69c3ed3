package loadgen

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// perOctave is how fine the histogram is: a value is told to within 1/32.
const perOctave = 32

// histogram counts times from any goroutine, in a fixed space.
type histogram struct {
	buckets [64 * perOctave]atomic.Int64
}

func bucketOf(d time.Duration) int {
	v := uint64(max(d, perOctave))
	octave := bits.Len64(v) - 1
	return octave*perOctave + int(v>>(octave-5))&(perOctave-1)
}

// upper is the upper end of a bucket.
func upper(bucket int) time.Duration {
	octave, part := bucket/perOctave, bucket%perOctave
	return time.Duration((uint64(perOctave+part+1) << octave) / perOctave)
}

func (h *histogram) add(d time.Duration) { h.buckets[bucketOf(d)].Add(1) }

func (h *histogram) reset() {
	for i := range h.buckets {
		h.buckets[i].Store(0)
	}
}

// quantile is a time that a share q of all is not above, 0 when there is none.
func (h *histogram) quantile(q float64) time.Duration {
	total := int64(0)
	for i := range h.buckets {
		total += h.buckets[i].Load()
	}
	left := int64(q * float64(total))
	for i := range h.buckets {
		if left -= h.buckets[i].Load(); left < 0 {
			return upper(i)
		}
	}
	return 0
}
