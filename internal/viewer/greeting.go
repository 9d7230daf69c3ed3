package viewer

import (
	"encoding/hex"
	"slices"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/swarm"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// greeting is what is said of what is held: segment by segment, and all at once ahead of a link.
type greeting struct {
	store    *store
	segments *segments
	self     func() swarm.ID
	swarm    swarm.ID
	uploads  func() bool
	parts    bool // it speaks parts
}

// announcement is what to tell of a segment; ok is false if nothing is held of it.
func (g *greeting) announcement(id string) (entry peer.HaveEntry, ok bool) {
	_, _ = hex.Decode(entry.Segment[:], []byte(id))
	held := g.store.get(id)
	if held == nil || !g.uploads() {
		return entry, false
	}
	entry.Pieces = uint16(len(held.pieces))
	if held.complete() {
		entry.State = peer.HoldsComplete
		return entry, true
	}
	s := g.segments.byID[id]
	if held.count == 0 && (s == nil || !s.wanted()) {
		return entry, false
	}
	entry.State, entry.Bitmap = peer.HoldsPartial, slices.Clone(held.bitmap)
	return entry, true
}

// first is what this viewer says first on a link that it answers: its hello, and what it has, as far as an answer takes
// it, and the certificates of what the other side wants. held is which segments that names as held.
func (g *greeting) first(link transfer.Link, wanted []signal.ID) (said []signal.Bytes, held []string) {
	first := []peer.Message{g.hello(link)}
	var have peer.Have
	size := haveHeader
	for _, id := range g.store.ids() {
		entry, ok := g.announcement(id)
		size += haveEntry + len(entry.Bitmap)
		if size > signal.MaxSaidBytes || len(have.Entries) == maxEntries {
			break
		}
		if ok {
			have.Entries, held = append(have.Entries, entry), append(held, id)
		}
	}
	if len(have.Entries) > 0 {
		first = append(first, have)
	}
	for _, id := range wanted {
		s := g.segments.byID[hex.EncodeToString(id[:])]
		if s == nil || s.cert == nil {
			continue
		}
		if raw := s.cert.Bytes(); len(raw) <= transfer.MostShown {
			first = append(first, peer.Certificate{Segment: segment.ID(id), Raw: raw})
		}
	}
	return transfer.Say(first...), held
}

// Bytes of a have, and of each entry in it without its bitmap; and the most entries.
const (
	haveHeader = 2
	haveEntry  = 19
	maxEntries = 255
)

// hello is this viewer's on a link.
func (g *greeting) hello(link transfer.Link) peer.Hello {
	hello := peer.Hello{MinVersion: 1, MaxVersion: peer.Version, MaxRequests: ownMaxRequests, Peer: g.self(), Swarm: g.swarm}
	if !g.uploads() {
		hello.Flags = peer.NoUpload
	}
	if g.parts {
		hello.Flags |= peer.SpeaksParts
	}
	if _, acks := link.(background.Link); acks {
		hello.Flags |= peer.AcksBackground
	}
	return hello
}
