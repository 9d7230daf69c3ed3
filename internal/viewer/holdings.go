package viewer

import (
	"encoding/hex"
	"slices"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// holdings is what one peer says it holds. The maps are handed to the schedule as they are, which does not change them.
type holdings struct {
	holds  map[string]schedule.Holding
	heard  map[string]int64 // µs of the last announcement of a segment held in part
	pieces map[string]int   // of each segment
	order  []string         // of announcement
}

func newHoldings() *holdings {
	return &holdings{holds: map[string]schedule.Holding{}, heard: map[string]int64{}, pieces: map[string]int{}}
}

func (h *holdings) forget(id string) {
	if _, ok := h.holds[id]; !ok {
		return
	}
	delete(h.holds, id)
	delete(h.heard, id)
	delete(h.pieces, id)
	at := slices.Index(h.order, id)
	h.order = slices.Delete(h.order, at, at+1)
}

func (h *holdings) apply(entries []peer.HaveEntry, nowUs int64) {
	for _, e := range entries {
		id := hex.EncodeToString(e.Segment[:])
		h.forget(id)
		if e.State == peer.HoldsNone {
			continue
		}
		h.order = append(h.order, id)
		h.pieces[id] = int(e.Pieces)
		if e.State == peer.HoldsComplete {
			h.holds[id] = schedule.Holding{Complete: true}
		} else {
			held := []int{}
			for n := range int(e.Pieces) {
				if peer.BitmapHas(e.Bitmap, n) {
					held = append(held, n)
				}
			}
			h.holds[id], h.heard[id] = schedule.Holding{Pieces: held}, nowUs
		}
		if len(h.order) > peer.MaxHaveSegments {
			h.forget(h.order[0])
		}
	}
}

// remove notes that a piece turned out not to be held, and says whether it was announced.
func (h *holdings) remove(id string, piece int) bool {
	held, ok := h.holds[id]
	if !ok {
		return false
	}
	announced := false
	left := []int{}
	for n := range h.pieces[id] {
		switch has := held.Complete || slices.Contains(held.Pieces, n); {
		case has && n == piece:
			announced = true
		case has:
			left = append(left, n)
		}
	}
	h.holds[id] = schedule.Holding{Pieces: left}
	return announced
}
