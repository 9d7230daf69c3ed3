package parts

import (
	"fmt"

	"github.com/leeway-video/leeway/internal/segment"
)

// chunkWalk is a viewer that is the source of a stream of chunks, by what a packager signs: it is late with one, and has none for another.
func chunkWalk() (steps []walkStep) {
	w := newWalker()
	step := func(format string, args ...any) {
		do := fmt.Sprintf(format, args...)
		steps = append(steps, walkStep{do, w.do(do)})
	}
	sends := func(now, turn int) { // the origin sends a chunk
		step("%d sign 1 %d", now, turn)
		_, data := walked(1, turn)
		for i := range segment.Pieces(int64(len(data))) {
			step("%d origin 1 %d %d", now, turn, i)
		}
	}
	asks := func(now, turn int) {
		step("%d expect 1 %d reached", now, turn)
		step("%d ask 1 %d %d 50000 1000000", now, turn, now+3_000_000)
	}
	step("0 linked 2 viewer")
	step("0 linked 3 viewer")
	step("0 follow 1 8 500000 whole")
	for _, peer := range []int{2, 3} {
		step("0 heard %d follow 1 on", peer)
	}
	asks(100_000, 0)
	sends(500_000, 0)
	step("520000 loaded 1 0 none")
	step("600000 tick")
	step("620000 loaded 1 0")
	step("620000 answer")
	for stripe := range stripes {
		step("700000 heard %d subscribe 1 %d 8", 2+stripe%2, stripe)
	}
	asks(700_000, 1)
	sends(1_000_000, 1)
	asks(1_000_000, 2)
	sends(1_010_000, 2) // before the certificate of the one before it has come
	step("1020000 loaded 1 1")
	step("1020000 answer")
	step("1020000 sent 2")
	step("1020000 sent 3")
	for now := 1_030_000; now < 1_400_000; now += 100_000 {
		step("%d loaded 1 2 none", now)
		step("%d tick", now+50_000)
	}
	asks(1_390_000, 3)
	step("1400000 expect 1 %d reached", End)
	step("1400000 end 1 %d", End)
	step("1420000 loaded 1 %d", End)
	step("1420000 answer")
	asks(1_500_000, turns)
	step("1500000 tick") // when it is due does not follow from how long the segment is
	step("3500000 tick") // there was none for four parts
	return steps
}
