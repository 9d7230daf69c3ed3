package viewer

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestBackoffOfASessionThatLasted(t *testing.T) {
	w := newWorld()
	b := backoff{loop: w, random: rand.New(rand.NewPCG(1, 2))}
	for range 20 {
		if d := b.next(false, 0); d > backoffCap {
			t.Fatalf("waits %v", d)
		}
	}
	b.readyAt = w.now
	if b.next(true, 0); b.attempt != 16 {
		t.Errorf("a session that did not last begins at %d", b.attempt)
	}
	w.run(settledAfter)
	if d := b.next(true, 0); d > backoffBase || b.attempt != 1 {
		t.Errorf("after one that did: %v, then %d", d, b.attempt)
	}
	b.hold(time.Hour)
	b.hold(time.Minute)
	if d := b.next(false, lostSpread); d != time.Hour {
		t.Errorf("waits %v, though the tracker said an hour", d)
	}
	if b.soon() != time.Hour || b.awake() {
		t.Errorf("soon is %v; awake: %t", b.soon(), b.awake())
	}
}
