package background

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	payload    = 1156
	maxMessage = 16384
)

// wire is a link on a simulated path: messages pass a bottleneck with a queue, acks come back after half the base delay.
// It runs in a synctest bubble, on its clock.
type wire struct {
	rate  int // bytes/s
	delay time.Duration
	line  *line // shared by links of one host

	mu       sync.Mutex
	deliver  func([]byte)
	ack      func([]byte)
	sizes    []int
	at       []time.Time
	acks     int
	cramped  bool
	drop     func(n int) bool // of the n-th message, from 1; it comes a round trip later, as SCTP sends it again
	inFlight int              // bytes, for the most that was
	most     int
}

// line is a bottleneck.
type line struct {
	mu   sync.Mutex
	free time.Time
}

// pass returns when size bytes have passed.
func (l *line) pass(size, rate int) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(size) * time.Second / time.Duration(rate))
	return l.free
}

func (w *wire) Room(int) (int, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return 0, !w.cramped
}

func (w *wire) SendBackground(b []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sizes, w.at = append(w.sizes, len(b)), append(w.at, time.Now())
	w.inFlight += len(b)
	w.most = max(w.most, w.inFlight)
	message, wait := append([]byte(nil), b...), w.delay/2
	if w.drop != nil && w.drop(len(w.sizes)) {
		wait += w.delay
	}
	arrives := w.line.pass(len(b), w.rate).Add(wait)
	time.AfterFunc(time.Until(arrives), func() {
		w.mu.Lock()
		w.inFlight -= len(message)
		w.mu.Unlock()
		w.deliver(message)
	})
	return true
}

func (w *wire) SendAck(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acks++
	a := append([]byte(nil), b...)
	time.AfterFunc(w.delay/2, func() {
		w.mu.Lock()
		ack := w.ack
		w.mu.Unlock()
		ack(a)
	})
}

func (w *wire) Payload() int    { return payload }
func (w *wire) MaxMessage() int { return maxMessage }

func (w *wire) sent() (n, bytes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sizes {
		bytes += s
	}
	return len(w.sizes), bytes
}

// store is a source of so many bytes.
type store struct {
	mu   sync.Mutex
	left int
}

func (s *store) Waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left > 0
}

func (s *store) Next(n int) (peer.Data, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, s.left)
	s.left -= n
	return peer.Data{Request: 7, Payload: make([]byte, n)}, n > 0
}

// host is a sender with links over one line.
type host struct {
	sender    *Sender
	wires     []*wire
	lanes     []*Lane
	receivers []*Receiver
	stores    []*store
	stop      func()
}

func newHost(links, rate int, delay time.Duration) *host {
	h := &host{sender: NewSender(ledbat.Config{}, time.Now)}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		h.sender.Run(ctx)
	}()
	shared := &line{}
	for range links {
		w, s := &wire{rate: rate, delay: delay, line: shared}, &store{left: 1 << 40}
		r := NewReceiver(w, nil, time.Now)
		w.deliver = func(b []byte) { _, _, _ = r.Data(b) }
		var lane *Lane
		ready := make(chan struct{})
		w.ack = func(b []byte) { <-ready; lane.Ack(b) }
		lane = h.sender.Add(w, s, 0)
		close(ready)
		h.wires, h.lanes, h.receivers, h.stores = append(h.wires, w), append(h.lanes, lane), append(h.receivers, r), append(h.stores, s)
	}
	h.stop = func() {
		cancel()
		<-ran
		for i, r := range h.receivers {
			r.Close()
			h.lanes[i].Close()
		}
	}
	return h
}

// wait lets the bubble's time pass.
func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestTheLineIsFilledAndTheQueueKeptShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate = 125_000
		h := newHost(1, rate, 100*time.Millisecond)
		defer h.stop()
		wait(20 * time.Second)
		w := h.wires[0]
		_, before := w.sent()
		w.mu.Lock()
		w.most = 0 // how far the law's start goes is the law's business
		w.mu.Unlock()
		wait(40 * time.Second)
		_, after := w.sent()
		if got := float64(after-before) / 40; got < 0.9*rate {
			t.Errorf("%.0f bytes/s of %d", got, rate)
		}
		s := h.sender.Stats()
		if s.Base < 100_000 || s.Base > 150_000 || s.Queuing > 2*s.Target || s.Target < 50_000 {
			t.Errorf("the law sees base %d µs, queue %d, target %d on a path of 100 ms", s.Base, s.Queuing, s.Target)
		}
		// The path, and twice the target of queue.
		if most := w.most; most > rate/10+rate*2*int(s.Target)/1_000_000+4*payload {
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
		w.mu.Lock()
		defer w.mu.Unlock()
		large := 0
		for i, n := range w.sizes {
			if n > maxMessage || n%payload != 0 || n > payload && n/payload%2 != 0 {
				t.Fatalf("message %d has %d bytes, a packet carries %d", i, n, payload)
			}
			large = max(large, n)
		}
		if large < 8*payload {
			t.Errorf("the largest message at 100 Mbit/s has %d bytes", large)
		}
		if w.acks > len(w.sizes)/2 {
			t.Errorf("%d acks for %d messages", w.acks, len(w.sizes))
		}
	})
}

func TestForegroundStopsBackgroundAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(3, 1_250_000, 40*time.Millisecond)
		defer h.stop()
		wait(2 * time.Second)
		h.sender.Urgent(true)
		h.sender.Urgent(true)
		_, before := total(h)
		wait(time.Second)
		h.sender.Urgent(false)
		wait(time.Second)
		if _, now := total(h); now != before {
			t.Errorf("%d bytes of background went out beside foreground", now-before)
		}
		h.sender.Urgent(false)
		wait(2 * time.Second)
		if _, now := total(h); now-before < 1_250_000/2 {
			t.Errorf("%d bytes in the 2 s after foreground", now-before)
		}
	})
}

func total(h *host) (n, bytes int) {
	for _, w := range h.wires {
		k, b := w.sent()
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
			if _, bytes := w.sent(); bytes < all/8 || bytes > all*3/8 {
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
		_, before := h.wires[0].sent()
		wait(10 * time.Second)
		if _, after := h.wires[0].sent(); after-before < 1_250_000*8 {
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
			w.mu.Lock()
			w.at = nil
			w.mu.Unlock()
		}
		wait(10 * time.Second)
		for i, w := range h.wires {
			w.mu.Lock()
			for _, at := range w.at {
				all = append(all, sent{at, i})
			}
			w.mu.Unlock()
		}
		slices.SortStableFunc(all, func(a, b sent) int { return a.at.Compare(b.at) })
		changes := 0
		for i := range all {
			if i > 0 && all[i].link != all[i-1].link {
				changes++
			}
		}
		if most := 10 * 1_000_000 / turnLeast * 2; changes == 0 || changes > most {
			t.Errorf("the link changed %d times in %d messages, want at most %d", changes, len(all), most)
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
		before, _ := h.wires[0].sent()
		h.stores[0].mu.Lock()
		h.stores[0].left = 3000
		h.stores[0].mu.Unlock()
		h.lanes[0].Wake()
		wait(time.Second)
		n, _ := h.wires[0].sent()
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
		h.wires[0].mu.Lock()
		h.wires[0].cramped = true
		h.wires[0].mu.Unlock()
		wait(2 * time.Second)
		before, _ := h.wires[0].sent()
		other, _ := h.wires[1].sent()
		if other < 100 {
			t.Errorf("the other link sent %d messages", other)
		}
		h.wires[0].mu.Lock()
		h.wires[0].cramped = false
		h.wires[0].mu.Unlock()
		wait(2 * time.Second)
		if after, _ := h.wires[0].sent(); after-before < 100 {
			t.Errorf("%d messages in 2 s after there was room", after-before)
		}
	})
}

func TestLossesAreSeenByTheirGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(1, 1_250_000, 40*time.Millisecond)
		defer h.stop()
		h.wires[0].mu.Lock()
		h.wires[0].drop = func(n int) bool { return n > 100 && n%200 == 0 }
		h.wires[0].mu.Unlock()
		wait(10 * time.Second)
		s := h.sender.Stats()
		if s.Losses == 0 || s.Timeouts > 0 {
			t.Errorf("%+v", s)
		}
		if _, bytes := h.wires[0].sent(); bytes < 1_250_000*7 {
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
		w.mu.Lock()
		heard := w.ack
		w.ack = func([]byte) {}
		w.mu.Unlock()
		wait(5 * time.Second)
		if s := h.sender.Stats(); s.Timeouts == 0 || s.Flight > 4*payload {
			t.Errorf("after five silent seconds: %+v", s)
		}
		w.mu.Lock()
		w.ack = heard
		w.mu.Unlock()
		_, before := w.sent()
		wait(20 * time.Second)
		if _, after := w.sent(); after-before < 1_250_000*10 {
			t.Errorf("%d bytes in the 20 s after the silence", after-before)
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
