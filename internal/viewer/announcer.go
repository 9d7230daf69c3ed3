package viewer

import (
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

const announceEvery = 50 * time.Millisecond // the least time between two messages about what is held

// announcer tells one peer what is held here, as it changes.
type announcer struct {
	loop    Loop
	entryOf func(id string) (entry peer.HaveEntry, ok bool)
	send    func(peer.Message)

	dirty     []string // segments to announce
	announced map[string]bool
	at        time.Time // of the last message
	timer     func()
}

// said notes segments that were announced ahead of the link, and may have changed since.
func (a *announcer) said(ids []string) {
	a.dirty = ids
	for _, id := range ids {
		a.announced[id] = true
	}
}

// add has segments announced with the next message, unless that is due already.
func (a *announcer) add(ids []string) {
	for _, id := range ids {
		if !a.announced[id] {
			a.dirty = append(a.dirty, id)
		}
	}
}

// tell announces a segment at once, if nothing was said just now.
func (a *announcer) tell(id string) {
	if !slices.Contains(a.dirty, id) {
		a.dirty = append(a.dirty, id)
	}
	if a.timer != nil {
		return
	}
	if wait := a.at.Add(announceEvery).Sub(a.loop.Now()); wait > 0 {
		a.timer = a.loop.After(wait, a.flush)
	} else {
		a.flush()
	}
}

// flush says all of it now.
func (a *announcer) flush() {
	a.stop()
	if len(a.dirty) == 0 {
		return
	}
	a.at = a.loop.Now()
	var entries []peer.HaveEntry
	for _, id := range a.dirty {
		if entry, ok := a.entryOf(id); ok {
			a.announced[id] = true
			entries = append(entries, entry)
		} else if a.announced[id] {
			delete(a.announced, id)
			entries = append(entries, peer.HaveEntry{Segment: entry.Segment})
		}
	}
	a.dirty = nil
	for part := range slices.Chunk(entries, maxEntries) {
		a.send(peer.Have{Entries: part})
	}
}

func (a *announcer) stop() {
	if a.timer != nil {
		a.timer()
		a.timer = nil
	}
}
