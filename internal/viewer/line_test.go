package viewer

import (
	"testing"
	"time"
)

// tap is an origin of which a test says what has come.
type tap struct{ progress func(int64) }

func (o *tap) Get(_ Fetch, progress func(int64), _ func(Fetched, error)) (cancel func()) {
	o.progress = progress
	return func() {}
}

func TestAFetchThatIsGivenUpIsABound(t *testing.T) {
	w, origin := newWorld(), &tap{}
	l := newLine(w, origin)
	giveUp := func(bytes int64, took time.Duration) {
		cancel, _ := l.fetch(Fetch{}, false, func(Fetched, error) { t.Error("an answer after the cancel") })
		origin.progress(10_000)
		w.run(took)
		origin.progress(10_000 + bytes)
		cancel()
		cancel()
	}
	if giveUp(500_000, time.Second); l.estimate() != 0 {
		t.Errorf("%.0f without anything to hold it against", l.estimate())
	}
	l.sample(500_000, time.Second, 0, w.Now())
	// What came behind a lost packet was there and not seen.
	if giveUp(375_000, time.Second); l.estimate() != 4e6 {
		t.Errorf("%.0f after what a line of 4 Mbit/s shows as well", l.estimate())
	}
	// So much was there for certain; and so little cannot be late alone.
	if giveUp(1_000_000, time.Second); l.estimate() < 5e6 {
		t.Errorf("%.0f after more than that", l.estimate())
	}
	if giveUp(250_000, 4*time.Second); l.estimate() > 2.5e6 {
		t.Errorf("%.0f after much less", l.estimate())
	}
}

// TestShortSegmentsTellWhatTheOriginTakes: they are no sample, but the next one takes as long.
func TestShortSegmentsTellWhatTheOriginTakes(t *testing.T) {
	w := newWorld()
	l := newLine(w, answering{Fetched{Data: make([]byte, 20_000), Transfer: 160 * time.Millisecond}})
	if l.timeUs(20_000) != -1 {
		t.Errorf("%d µs of a line that was not used", l.timeUs(20_000))
	}
	l.fetch(Fetch{}, false, func(Fetched, error) {})
	w.run(time.Millisecond)
	if us := l.timeUs(20_000); l.estimate() != 0 || us != l.answer.Microseconds()+160_000 {
		t.Errorf("%d µs for as much again, by an estimate of %.0f", us, l.estimate())
	}
	l.sample(500_000, time.Second, 0, w.Now())
	if us := l.timeUs(20_000); us != l.answer.Microseconds()+40_000 {
		t.Errorf("%d µs, and there is a sample", us)
	}
}

// answering is an origin that answers at once, and says how long that took.
type answering struct{ got Fetched }

func (o answering) Get(_ Fetch, _ func(int64), done func(Fetched, error)) (cancel func()) {
	done(o.got, nil)
	return func() {}
}
