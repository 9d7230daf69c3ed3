package transfer

import (
	"testing"
	"time"
)

// TestOneOfSeveralThatAreServedInTurnSeesItsPart: a sender with 125 kB/s has four links, and gives each of them its whole line for
// an eighth of a second.
func TestOneOfSeveralThatAreServedInTurnSeesItsPart(t *testing.T) {
	const message, each = 2048, 16384 * time.Microsecond
	var m meter
	now := time.Unix(1000, 0)
	m.arrived(message, now, 60*time.Millisecond, false)
	if m.rate(now) != 0 {
		t.Errorf("%d bytes/s after one message", m.rate(now))
	}
	for turn := range 12 {
		for range 8 {
			now = now.Add(each)
			m.arrived(message, now, 0, false)
		}
		if r := m.rate(now); turn == 0 && r != 125_000 {
			t.Errorf("%d bytes/s in the first turn, want 125000", r)
		} else if turn >= 4 && (r < 25_000 || r > 40_000) {
			t.Errorf("turn %d: %d bytes/s, want a quarter of 125000", turn, r)
		}
		now = now.Add(3 * 8 * each)
	}
	// Alone, it has the line soon.
	for range 60 * 4 {
		now = now.Add(each)
		m.arrived(message, now, 0, false)
	}
	if r := m.rate(now); r < 100_000 {
		t.Errorf("%d bytes/s four seconds after the others went", r)
	}
}

// TestTheTimeUntilAnAnswerIsDueIsNotHeldAgainstIt: a piece now and then, a round trip after each request.
func TestTheTimeUntilAnAnswerIsDueIsNotHeldAgainstIt(t *testing.T) {
	var m meter
	now := time.Unix(1000, 0)
	for range 40 {
		now = now.Add(200 * time.Millisecond)
		m.arrived(8192, now, 200*time.Millisecond, false)
		now = now.Add(60 * time.Millisecond)
		m.arrived(8192, now, 0, true)
		now = now.Add(time.Second) // nothing is asked
	}
	if r := m.rate(now); r < 130_000 {
		t.Errorf("%d bytes/s, want about %d", r, 8192*1000/60)
	}
}

// TestALowRateIsMeasuredAnew: a peer that is not asked because of it would stay slow for good.
func TestALowRateIsMeasuredAnew(t *testing.T) {
	var m meter
	now := time.Unix(1000, 0)
	serve := func(bytes int) {
		m.arrived(bytes, now, 20*time.Millisecond, false)
		for i := range 20 {
			now = now.Add(60 * time.Millisecond)
			m.arrived(bytes, now, 0, i == 19)
		}
	}
	serve(1200)
	if r := m.rate(now); r < 19_000 || r > 21_000 {
		t.Fatalf("%d bytes/s, want about 20000", r)
	}
	now = now.Add(rateAge - time.Microsecond)
	if m.rate(now) == 0 {
		t.Error("forgotten too soon")
	}
	now = now.Add(time.Microsecond)
	if r := m.rate(now); r != 0 {
		t.Errorf("%d bytes/s, and nothing came for %s", r, rateAge)
	}
	serve(6000)
	if r := m.rate(now); r < 95_000 || r > 105_000 {
		t.Errorf("%d bytes/s when it was measured anew, want about 100000", r)
	}
	now = now.Add(time.Minute)
	if m.rate(now) == 0 {
		t.Error("a peer that is quicker than an unknown one is forgotten")
	}
}

// TestAShortMessageIsNoMeasureOfWhatComesBehindIt: a short last piece comes first, and the message behind it says nothing of what comes then.
func TestAShortMessageIsNoMeasureOfWhatComesBehindIt(t *testing.T) {
	var m meter
	now := time.Unix(1000, 0)
	m.arrived(576, now, 60*time.Millisecond, false)
	after := func(wait time.Duration, bytes int) {
		now = now.Add(wait)
		m.arrived(bytes, now, 0, false)
		if r := m.rate(now); r < 1 || r > 2_500 {
			t.Errorf("%d bytes/s, want about 1000", r)
		}
	}
	for _, bytes := range []time.Duration{576, 8192, 8192} { // each is paid for before the next: a kilobyte a second
		after(bytes*time.Millisecond, 8192)
	}
	m = meter{} // and where the short message is the second
	m.arrived(8192, now, 60*time.Millisecond, false)
	after(174*time.Millisecond, 100)
	after(118*time.Millisecond, 8192)
	after(8192*time.Millisecond, 8192)
}
