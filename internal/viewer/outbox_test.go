package viewer

import (
	"slices"
	"testing"
	"time"
)

func TestTheOutboxKeepsTheRateAndLeavesRoomForItsOwnWords(t *testing.T) {
	w := newWorld()
	var sent []string
	o := outbox{loop: w, write: func(b []byte) { sent = append(sent, string(b)) }}
	o.limit(11)
	for range 20 {
		o.put([]byte("s"), true)
	}
	if len(sent) != 10-reserved {
		t.Fatalf("%d signals in the first second", len(sent))
	}
	for range reserved + 1 {
		o.put([]byte("u"), false)
	}
	if n := len(slices.DeleteFunc(slices.Clone(sent), func(m string) bool { return m == "s" })); n != reserved {
		t.Errorf("%d of %d own messages left beside the signals", n, reserved+1)
	}
	w.run(time.Second)
	if len(sent) != 10+1+10-reserved-1 {
		t.Errorf("%d messages after a second", len(sent))
	}
	o.exhaust()
	before := len(sent)
	o.put([]byte("u"), false)
	if len(sent) != before {
		t.Error("sent in a second that the tracker said is over")
	}
	o.rush()
	if got := sent[len(sent)-1]; got != "s" || len(sent) != before+1+20-2*(10-reserved)+1 {
		t.Errorf("%d messages in all, the last %q", len(sent), got)
	}
	o.clear()
	before = len(sent)
	w.run(5 * time.Second)
	if len(sent) != before {
		t.Error("sent after the end")
	}
}
