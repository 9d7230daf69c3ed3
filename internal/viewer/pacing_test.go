package viewer

import (
	"testing"
	"time"
)

// TestOneCallOfWorkIsOnItsWay: however often it is asked for, from any goroutine.
func TestOneCallOfWorkIsOnItsWay(t *testing.T) {
	w := newWorld()
	p := newPacing(w)
	before := len(w.queue)
	p.soon()
	p.soon()
	if n := len(w.queue) - before; n != 1 {
		t.Errorf("%d calls are on their way", n)
	}
	w.run(time.Millisecond)
	before = len(w.queue)
	if p.soon(); len(w.queue) != before+1 {
		t.Error("not asked for again after the call")
	}
	p.stop()
	if w.run(time.Hour); len(w.queue) != 0 {
		t.Errorf("%d events are left after the end", len(w.queue))
	}
}

// TestAHostThatStartsAnewCountsAnew: on another path of its only link it has a controller without slowdowns; a report is of what came since.
func TestAHostThatStartsAnewCountsAnew(t *testing.T) {
	p := newPacing(newWorld())
	defer p.stop()
	p.sent, p.stats.Slowdowns = -1, 5
	if m := p.take(); m == nil || m.Slowdowns != 0 {
		t.Errorf("%+v", m)
	}
}
