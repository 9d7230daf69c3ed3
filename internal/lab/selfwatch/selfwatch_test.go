package selfwatch

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestFiguresOfThisProcess(t *testing.T) {
	current := goleak.IgnoreCurrent()
	defer goleak.VerifyNone(t, current)
	var w Watch
	ctx, cancel := context.WithCancel(context.Background())
	w.Start(ctx)
	w.late(30 * time.Millisecond)
	f := w.Figures(true)
	if f.CPU <= 0 || f.RSS <= 0 || f.Goroutines < 2 || f.Processors < 1 || f.Lag < 29_000 {
		t.Errorf("%+v", f)
	}
	cancel()
	w.Wait()
	if f = w.Figures(false); f.Lag > time.Minute.Microseconds() {
		t.Errorf("lag %d µs", f.Lag)
	}
}

// TestAStallDelaysEachTickOfIt: a process that stands still for 0.4 s of each second is late, though only one of its looks at the clock is.
func TestAStallDelaysEachTickOfIt(t *testing.T) {
	var w Watch
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.Start(ctx)
	w.Wait()
	for range 60 {
		w.late(time.Millisecond)
	}
	w.late(400 * time.Millisecond)
	if f := w.Figures(true); f.Lag < 350_000 {
		t.Errorf("lag %d µs", f.Lag)
	}
}

func TestColumn(t *testing.T) {
	table := []byte("Ip: A B\nIp: 1 2\nUdp: InDatagrams RcvbufErrors\nUdp: 17 4\nUdpLite: InDatagrams RcvbufErrors\nUdpLite: 9 9\n")
	if got := column(table, "Udp:", "RcvbufErrors"); got != 4 {
		t.Errorf("%d drops, expected 4", got)
	}
	if got := column(table, "Udp:", "Nothing"); got != 0 {
		t.Errorf("%d of a column that is not there", got)
	}
}
