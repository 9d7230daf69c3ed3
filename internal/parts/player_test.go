package parts

import (
	"testing"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// TestTheOriginIsAskedWhenPeersAreDue: at once where no peer is awaited, and for the rest half a part later, when the parents have missed
// it.
func TestTheOriginIsAskedWhenPeersAreDue(t *testing.T) {
	r := fedRig()
	r.list(2)
	r.Ask(second, 2, Wanted{Deadline: 10 * second, RTT: 50_000, Rate: 1_000_000})
	awaited := map[int]bool{}
	p := r.shelf.parts[2]
	for i := range p.pieces {
		awaited[i] = r.mesh.Parent(p.stripe(i)) != (ID{})
	}
	fetched := map[int]bool{}
	fetches := func(acts []Act) (count int) {
		for _, a := range acts {
			if f, ok := a.(Fetch); ok {
				for _, run := range f.Runs {
					for i := run.First; i <= run.Last; i++ {
						if fetched[i] {
							t.Errorf("piece %d is fetched twice", i)
						}
						fetched[i] = true
						count++
					}
				}
			}
		}
		return count
	}
	fetches(r.settle(second))
	for i := range p.pieces {
		if fetched[i] == awaited[i] {
			t.Errorf("piece %d: awaited %v, fetched %v", i, awaited[i], fetched[i])
		}
	}
	due := r.player.asked.at + 400_000 // mesh.Due
	if next := r.Next(due - 1); next != due {
		t.Errorf("looked at %d, due at %d", next, due)
	}
	r.Tick(due - 1)
	if fetches(r.settle(due-1)) > 0 {
		t.Error("before it is due")
	}
	r.Tick(due)
	acts := r.settle(due)
	if fetches(acts); len(fetched) != len(p.pieces) || len(said[peer.Enough](acts, seed)) != 0 {
		t.Errorf("%d of %d pieces, and a peer that is on trial is told %+v", len(fetched), len(p.pieces), said[peer.Enough](acts, seed))
	}
	_, data := partOf(2)
	for i := range p.pieces {
		r.Origin(due+1, 2, i, pieceOf(data, i))
	}
	ready := 0
	for _, a := range r.settle(due + 1) {
		if a == (Ready{stream1, 2}) {
			ready++
		}
	}
	if ready != 1 {
		t.Errorf("%d times ready", ready)
	}
}

func TestPeersHoldWhileTheBufferIsShort(t *testing.T) {
	r := fedRig()
	r.Buffer(4, partTime/8, false)
	holds := said[peer.Hold](r.settle(4), seed)
	r.Buffer(5, partTime, false)
	r.Buffer(6, partTime, true)
	if offs := said[peer.Hold](r.settle(6), seed); len(holds) != 1 || !holds[0].On || len(offs) != 1 || offs[0].On {
		t.Errorf("%+v, %+v", holds, offs)
	}
}

// TestNoPeerIsTriedWhileTheBufferIsShort: it would be told to push nothing, and then be avoided since it has sent nothing.
func TestNoPeerIsTriedWhileTheBufferIsShort(t *testing.T) {
	for name, tried := range map[string]int{"before": 0, "since before": stripes} {
		r := newRig()
		if tried > 0 {
			r.subscribed(1, other)
		}
		r.Buffer(2, 0, false)
		r.subscribed(2, other)
		acts := r.settle(2)
		for now := second / 10; now <= 5*second; now += second / 10 {
			r.Tick(now)
			acts = append(acts, r.settle(now)...)
		}
		subscribes, ends := said[peer.Subscribe](acts, other), said[peer.Unsubscribe](acts, other)
		if len(subscribes) != tried || len(ends) != tried || len(said[peer.Hold](acts, other)) > 0 {
			t.Errorf("%s: %d subscriptions, %d ends", name, len(subscribes), len(ends))
		}
		r.Buffer(5*second, partTime, true)
		if n := len(said[peer.Subscribe](r.settle(5*second), other)); n != stripes {
			t.Errorf("%s: it is tried in %d stripes when the buffer is long enough", name, n)
		}
	}
}
