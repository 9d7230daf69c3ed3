package emulator

import (
	"math"
	"slices"
	"testing"
	"time"
)

// TestALedgerSaysWhichPacketsWereLost: those of its size, in the order in which they were sent, until the link gets other properties.
func TestALedgerSaysWhichPacketsWereLost(t *testing.T) {
	const packets, small, large = 400, 100, 600
	cfg := Link{Rate: 8_000_000, Queue: 1 << 20, Delay: time.Millisecond, Loss: 0.2, Seed: 3, Ledger: large}
	b := chain(t, cfg)
	for id := range packets {
		b.put(2*id, 1, large, time.Duration(id)*time.Millisecond)
		b.put(2*id+1, 1, small, time.Duration(id)*time.Millisecond)
	}
	came := make([]bool, packets)
	for _, p := range b.finish() {
		if p.id%2 == 0 {
			came[p.id/2] = true
		}
	}
	lost, err := b.Ledger(0, math.MaxInt64)
	if err != nil || len(lost) != packets {
		t.Fatalf("%d packets in the ledger, %v", len(lost), err)
	}
	if text := ledgerText(lost); !slices.Equal(readLedger(text), lost) {
		t.Errorf("%q is read as something else", text)
	}
	gone := 0
	for i := range lost {
		if lost[i] {
			gone++
		}
		if lost[i] == came[i] {
			t.Errorf("packet %d: came %v, lost %v", i, came[i], lost[i])
		}
	}
	if gone == 0 || gone == packets {
		t.Errorf("%d of %d lost", gone, packets)
	}
	cfg.Loss = 0
	if err := b.Set(0, cfg, math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	if lost, _ := b.Ledger(0, math.MaxInt64); len(lost) != 0 {
		t.Errorf("%d packets are in a ledger that begins", len(lost))
	}
	if _, err := b.Ledger(1, math.MaxInt64); err == nil {
		t.Error("a link that is not there has a ledger")
	}
}
