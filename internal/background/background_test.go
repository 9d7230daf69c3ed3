package background

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/ledbat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheLineIsFilledAndTheQueueKeptShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate = 125_000
		h := newHost(1, rate, 100*time.Millisecond)
		defer h.stop()
		wait(20 * time.Second)
		w := h.wires[0]
		_, before := w.Sent()
		w.Mu.Lock()
		w.Most = 0 // how far the controller's start goes is the controller's business
		w.Mu.Unlock()
		wait(40 * time.Second)
		_, after := w.Sent()
		if got := float64(after-before) / 40; got < 0.9*rate {
			t.Errorf("%.0f bytes/s of %d", got, rate)
		}
		s := h.sender.Stats()
		if s.Base < 100_000 || s.Base > 150_000 || s.Queuing > 2*s.Target || s.Target < 50_000 {
			t.Errorf("the controller sees base %d µs, queue %d, target %d on a path of 100 ms", s.Base, s.Queuing, s.Target)
		}
		// The path, and twice the target of queue.
		if most := w.Most; most > rate/10+rate*2*int(s.Target)/1_000_000+4*payload {
			t.Errorf("%d bytes were in flight on a path that holds %d", most, rate/10)
		}
	})
}

func TestMessagesAreWholePacketsOfTheAssociation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(1, 12_500_000, 20*time.Millisecond)
		defer h.stop()
		wait(5 * time.Second)
		w := h.wires[0]
		w.Mu.Lock()
		defer w.Mu.Unlock()
		large := 0
		for i, n := range w.Sizes {
			if n > maxMessage || n%payload != 0 || n > payload && n/payload%2 != 0 {
				t.Fatalf("message %d has %d bytes, a packet carries %d", i, n, payload)
			}
			large = max(large, n)
		}
		if large < 8*payload {
			t.Errorf("the largest message at 100 Mbit/s has %d bytes", large)
		}
		if w.Acks > len(w.Sizes)/2 {
			t.Errorf("%d acks for %d messages", w.Acks, len(w.Sizes))
		}
	})
}

func total(h *host) (n, bytes int) {
	for _, w := range h.wires {
		k, b := w.Sent()
		n, bytes = n+k, bytes+b
	}
	return n, bytes
}

func TestLinksShareOneBudgetInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(4, 1_250_000, 40*time.Millisecond)
		defer h.stop()
		wait(10 * time.Second)
		_, all := total(h)
		for i, w := range h.wires {
			if _, bytes := w.Sent(); bytes < all/8 || bytes > all*3/8 {
				t.Errorf("link %d had %d of %d bytes", i, bytes, all)
			}
		}
		if s := h.sender.Stats(); s.Flight > s.Window+maxMessage {
			t.Errorf("%d bytes in flight, the window is %d", s.Flight, s.Window)
		}
		// Three links have no more: the fourth gets all of it.
		for _, s := range h.stores[1:] {
			s.mu.Lock()
			s.left = 0
			s.mu.Unlock()
		}
		_, before := h.wires[0].Sent()
		wait(10 * time.Second)
		if _, after := h.wires[0].Sent(); after-before < 1_250_000*8 {
			t.Errorf("a link alone sent %d bytes in 10 s", after-before)
		}
	})
}

// TestALinkKeepsItsTurn counts how often the link changes from one message to the next: where a bottleneck has a queue for
// each flow, one link at a time has something waiting there.
func TestALinkKeepsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(4, 1_250_000, 40*time.Millisecond)
		defer h.stop()
		wait(10 * time.Second) // until each link is known not to be slower than the others
		type sent struct {
			at   time.Time
			link int
		}
		var all []sent
		for _, w := range h.wires {
			w.Mu.Lock()
			w.At = nil
			w.Mu.Unlock()
		}
		const seconds = 60 // links that are refuted for a while have short turns: in 10 s at times as many as there may be
		wait(seconds * time.Second)
		for i, w := range h.wires {
			w.Mu.Lock()
			for _, at := range w.At {
				all = append(all, sent{at, i})
			}
			w.Mu.Unlock()
		}
		slices.SortStableFunc(all, func(a, b sent) int { return a.at.Compare(b.at) })
		changes := 0
		for i := range all {
			if i > 0 && all[i].link != all[i-1].link {
				changes++
			}
		}
		if most := seconds * 1_000_000 / turnLeast * 2; changes == 0 || changes > most {
			t.Errorf("the link changed %d times in %d messages, want at most %d", changes, len(all), most)
		}
	})
}

// TestEveryLinkSeesTheBase has many links begin at once: by the time that the last of them has its turn, the first have made
// a queue, which is no part of the path.
func TestEveryLinkSeesTheBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(20, 1_250_000, 40*time.Millisecond)
		defer h.stop()
		wait(20 * time.Second)
		h.sender.mu.Lock()
		defer h.sender.mu.Unlock()
		for i, l := range h.lanes {
			if base := l.path.Base(); base < 40_000 || base > 46_000 {
				t.Errorf("link %d takes %d µs for the base of 40 ms", i, base)
			}
		}
	})
}

func TestAnEmptySourceIsAskedAgainWhenWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(1, 1_250_000, 40*time.Millisecond)
		defer h.stop()
		h.stores[0].mu.Lock()
		h.stores[0].left = 0
		h.stores[0].mu.Unlock()
		wait(5 * time.Second)
		before, _ := h.wires[0].Sent()
		h.stores[0].mu.Lock()
		h.stores[0].left = 3000
		h.stores[0].mu.Unlock()
		h.lanes[0].Wake()
		wait(time.Second)
		n, _ := h.wires[0].Sent()
		if h.stores[0].Waiting() || n == before {
			t.Errorf("%d messages went out after the wake-up", n-before)
		}
		if s := h.sender.Stats(); s.Flight != 0 {
			t.Errorf("%d bytes in flight a second after the last message: acks are missing", s.Flight)
		}
	})
}

func TestALinkWithoutRoomIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(2, 1_250_000, 40*time.Millisecond)
		defer h.stop()
		h.wires[0].Mu.Lock()
		h.wires[0].Cramped = true
		h.wires[0].Mu.Unlock()
		wait(2 * time.Second)
		before, _ := h.wires[0].Sent()
		other, _ := h.wires[1].Sent()
		if other < 100 {
			t.Errorf("the other link sent %d messages", other)
		}
		h.wires[0].Mu.Lock()
		h.wires[0].Cramped = false
		h.wires[0].Mu.Unlock()
		wait(2 * time.Second)
		if after, _ := h.wires[0].Sent(); after-before < 100 {
			t.Errorf("%d messages in 2 s after there was room", after-before)
		}
	})
}

func TestLossesAreSeenByTheirGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(1, 1_250_000, 40*time.Millisecond)
		defer h.stop()
		h.wires[0].Mu.Lock()
		h.wires[0].Late = func(n int) bool { return n > 100 && n%200 == 0 }
		h.wires[0].Mu.Unlock()
		wait(10 * time.Second)
		s := h.sender.Stats()
		if s.Losses == 0 || s.Timeouts > 0 {
			t.Errorf("%+v", s)
		}
		if _, bytes := h.wires[0].Sent(); bytes < 1_250_000*7 {
			t.Errorf("%d bytes in 10 s with one message of 200 late", bytes)
		}
	})
}

func TestAPathThatFallsSilentTimesOutAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(1, 1_250_000, 40*time.Millisecond)
		defer h.stop()
		wait(2 * time.Second)
		w := h.wires[0]
		heard := silence(w)
		wait(5 * time.Second)
		if s := h.sender.Stats(); s.Timeouts == 0 || s.Flight > 4*payload {
			t.Errorf("after five silent seconds: %+v", s)
		}
		heard()
		_, before := w.Sent()
		wait(20 * time.Second)
		if _, after := w.Sent(); after-before < 1_250_000*10 {
			t.Errorf("%d bytes in the 20 s after the silence", after-before)
		}
	})
}

// TestAnotherPathGoesOnAtOnce: whatever the old one has lost.
func TestAnotherPathGoesOnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(1, 1_250_000, 40*time.Millisecond)
		defer h.stop()
		wait(2 * time.Second)
		w := h.wires[0]
		heard := silence(w)
		wait(500 * time.Millisecond)
		heard()
		_, before := w.Sent()
		wait(100 * time.Millisecond)
		_, still := w.Sent()
		h.lanes[0].Reset()
		wait(100 * time.Millisecond)
		if _, after := w.Sent(); still != before || after-still < 15_000 {
			t.Errorf("%d bytes before the path is another one, %d after that", still-before, after-still)
		}
	})
}

func TestWhatIsNoAckIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(1, 1_250_000, 40*time.Millisecond)
		defer h.stop()
		wait(time.Second)
		future := ledbat.Ack{Cumulative: 1 << 20, Highest: 1 << 20}
		for _, b := range [][]byte{nil, {0x30}, make([]byte, ledbat.AckLen), future.Append(nil)} {
			if h.lanes[0].Ack(b) {
				t.Errorf("%x was taken for an ack", b)
			}
		}
	})
}
