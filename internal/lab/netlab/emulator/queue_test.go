package emulator

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Three flows that offer more than the link carries, one of them ten times as much as the others.
func TestFairQueueSharesByBytes(t *testing.T) {
	for _, fair := range []bool{true, false} {
		b := chain(t, Link{Rate: 8_000_000, Queue: 60_000, Fair: fair}) // a byte takes a microsecond
		const seconds = 2
		flows := map[int]int{}
		for us := 0; us < seconds*1_000_000; us += 100 {
			now := time.Duration(us) * time.Microsecond
			for flow, every := range []int{200, 2000, 2000} { // 1000 bytes each: 5, 0.5 and 0.5 times the link
				if us%every == 0 {
					flows[us*4+flow] = flow
					b.put(us*4+flow, flow, 1000, now)
				}
			}
		}
		var share [3]int
		for _, s := range b.finish() {
			if s.at > seconds*time.Second/2 && s.at < seconds*time.Second {
				share[flows[s.id]]++
			}
		}
		total := share[0] + share[1] + share[2]
		if total < 990 || total > 1010 {
			t.Errorf("fair %v: %d packets in a second that carries 1000", fair, total)
		}
		small := min(share[1], share[2])
		if fair != (small >= 320) {
			t.Errorf("fair %v: shares %v", fair, share)
		}
	}
}

func TestFairQueueTakesFromTheLongest(t *testing.T) {
	b := chain(t, Link{Rate: 8_000, Queue: 5_000, Fair: true}) // a byte takes a millisecond
	for i := range 10 {
		b.put(i, 0, 1000, 0)
	}
	b.put(10, 1, 900, 0)
	b.put(11, 2, 900, 0)
	var first []int
	for _, s := range b.finish() {
		first = append(first, s.id)
	}
	// Number 0 is being sent. Flow 0 keeps the last three; its turn comes first, a quantum is worth two of its packets.
	if want := []int{0, 7, 8, 10, 11, 9}; !slices.Equal(first, want) {
		t.Errorf("delivered %v, want %v", first, want)
	}
}

// A flow that keeps to its share waits for the packet that is being sent, however long the other's queue is.
func TestFairQueueIsShortForTheModest(t *testing.T) {
	b := chain(t, Link{Rate: 8_000_000, Queue: 200_000, Fair: true})
	const probe = 1 << 20
	came := map[int]time.Duration{}
	for us := range 1_000_000 {
		now := time.Duration(us) * time.Microsecond
		if us%500 == 0 {
			b.put(us, 0, 1500, now)
		}
		if us%20_000 == 10_007 {
			came[probe+us] = now
			b.put(probe+us, 1, 100, now)
		}
	}
	through := 0
	for _, s := range b.finish() {
		at, is := came[s.id]
		if !is {
			continue
		}
		if through++; s.at-at > 1500*time.Microsecond+100*time.Microsecond {
			t.Errorf("a probe waited %v behind a greedy flow", s.at-at)
		}
	}
	if through != len(came) {
		t.Errorf("%d of %d probes came through", through, len(came))
	}
}

func TestTimetableIsAlwaysInOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	const links = 37
	table := newTimetable(links)
	at := map[int]time.Duration{}
	for range 20_000 {
		i, when, ok := random.IntN(links), time.Duration(random.IntN(50)), random.IntN(3) > 0
		table.set(i, when, ok)
		if delete(at, i); ok {
			at[i] = when
		}
		want, found := -1, false
		for j, d := range at {
			if !found || d < at[want] || d == at[want] && j < want {
				want, found = j, true
			}
		}
		if got, when, ok := table.first(); ok != found || ok && (got != want || when != at[want]) {
			t.Fatalf("first is %d at %v (%v), want %d of %v", got, when, ok, want, at)
		}
	}
}

func TestHistogram(t *testing.T) {
	var h Histogram
	for i := range 1000 {
		h.add(time.Duration(i+1) * 10 * time.Microsecond) // 10 µs … 10 ms
	}
	before := h
	h.add(time.Second)
	if h.Count() != 1001 || h.Above(time.Millisecond) != 901 || h.Above(20*time.Millisecond) != 1 || h.Max != time.Second {
		t.Errorf("%+v: %d, %d above 1 ms", h, h.Count(), h.Above(time.Millisecond))
	}
	if got := before.Quantile(0.5); got != 5*time.Millisecond {
		t.Errorf("median at most %v", got)
	}
	if got := before.Quantile(1); got != 10*time.Millisecond {
		t.Errorf("all at most %v, want the longest", got)
	}
	if since := h.Since(before); since.Count() != 1 {
		t.Errorf("%+v since", since)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{0x45, 9: protocolTCP, 23: 0})
	f.Add([]byte{0x4f, 9: protocolUDP, 23: 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		p := &Packet{Size: copy(make([]byte, MaxPacket), data)}
		copy(p.Data[:], data)
		if p.parse() && (p.Size < 20 || data[0]>>4 != 4) && (p.Size < header6 || data[0]>>4 != 6) {
			t.Errorf("%x passed for IPv4", data)
		}
	})
}
