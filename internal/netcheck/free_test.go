package netcheck

import (
	"testing"

	"github.com/leeway-video/leeway/internal/netstat"
)

func TestFastestTwoSeconds(t *testing.T) {
	steps := func(bytes ...int64) (counts []netstat.Count) {
		sum := int64(0)
		for i, n := range bytes {
			sum += n
			counts = append(counts, netstat.Count{Elapsed: int64(i) * 500_000, Bytes: sum})
		}
		return counts
	}
	for _, c := range []struct {
		counts []netstat.Count
		want   float64
	}{
		{nil, 0},
		{steps(0, 10, 10, 10), 0}, // a second and a half
		{steps(0, 10, 10, 10, 10), 160},
		{steps(0, 10, 10, 10, 10, 0, 0), 160},
		{steps(100, 0, 0, 30, 20, 10, 40, 0, 0), 400}, // what came before the first count is of no time
		{[]netstat.Count{{Elapsed: 0}, {Elapsed: 3_000_000, Bytes: 300}}, 800}, // a count that is late
	} {
		if got := Fastest(c.counts); got != c.want {
			t.Errorf("%v: %v, want %v", c.counts, got, c.want)
		}
	}
}
