package viewer

import (
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

func TestRememberedPeers(t *testing.T) {
	w := newWorld()
	r := remembered{loop: w}
	one, other := signal.ID{1}, signal.ID{2}
	r.hold(one, time.Minute)
	r.hold(one, time.Second) // is no shorter for it
	if !r.holds(one) || r.holds(other) || r.left(one) != time.Minute {
		t.Errorf("%v left of one, %v of another", r.left(one), r.left(other))
	}
	if w.run(time.Minute); r.holds(one) {
		t.Error("remembered beyond its moment")
	}
	for i := range manyRemembered {
		r.hold(signal.ID{3, byte(i), byte(i >> 8)}, time.Second)
	}
	w.run(time.Second)
	if r.hold(other, time.Hour); len(r.until) != 1 || !r.holds(other) {
		t.Errorf("%d are remembered after the time of %d is over", len(r.until), manyRemembered)
	}
}
