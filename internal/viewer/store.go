package viewer

import (
	"container/list"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// store holds verified pieces in bounded memory. The least recently used segment goes first, whole; never one that is
// pinned, so the bound may be exceeded by what the player waits for. A piece is never changed once it is in: uploads and
// the player share its bytes.
type store struct {
	limit   int64
	pinned  func(id string) bool
	evicted func(id string)
	entries map[string]*list.Element // of *entry
	used    list.List                // the youngest at the back
	bytes   int64
}

// entry is what is held of one segment.
type entry struct {
	id     string
	length int64
	pieces [][]byte
	bitmap []byte // most significant bit first
	count  int
}

func (e *entry) complete() bool { return e != nil && e.count == len(e.pieces) }

// all are the pieces by number, nil for those that are not held.
func (e *entry) all() [][]byte {
	if e == nil {
		return nil
	}
	return e.pieces
}

// held lists the numbers of the pieces, sorted.
func (e *entry) held() []int {
	out := []int{}
	if e == nil {
		return out
	}
	for n := range e.pieces {
		if peer.BitmapHas(e.bitmap, n) {
			out = append(out, n)
		}
	}
	return out
}

func newStore(limit int64, pinned func(string) bool, evicted func(string)) *store {
	return &store{limit: limit, pinned: pinned, evicted: evicted, entries: map[string]*list.Element{}}
}

func (s *store) get(id string) *entry {
	if at := s.entries[id]; at != nil {
		return at.Value.(*entry)
	}
	return nil
}

// open returns the entry of a segment, made if there is none, as the youngest.
func (s *store) open(id string, length int64) *entry {
	if at := s.entries[id]; at != nil {
		s.used.MoveToBack(at)
		return at.Value.(*entry)
	}
	for at := s.used.Front(); at != nil && s.bytes+length > s.limit; {
		next := at.Next()
		if old := at.Value.(*entry).id; !s.pinned(old) {
			s.drop(old)
			s.evicted(old)
		}
		at = next
	}
	n := segment.Pieces(length)
	e := &entry{id: id, length: length, pieces: make([][]byte, n), bitmap: make([]byte, peer.BitmapLen(n))}
	s.entries[id] = s.used.PushBack(e)
	s.bytes += length
	return e
}

// put keeps a verified piece; false if it is there already.
func (s *store) put(id string, n int, data []byte) bool {
	e := s.get(id)
	if e == nil || peer.BitmapHas(e.bitmap, n) {
		return false
	}
	e.pieces[n] = data
	peer.BitmapSet(e.bitmap, n)
	e.count++
	return true
}

// piece returns the bytes of a piece, nil if it is not held, and makes the segment the youngest.
func (s *store) piece(id string, n int) []byte {
	at := s.entries[id]
	if at == nil || n >= len(at.Value.(*entry).pieces) {
		return nil
	}
	s.used.MoveToBack(at)
	return at.Value.(*entry).pieces[n]
}

func (s *store) drop(id string) {
	at := s.entries[id]
	if at == nil {
		return
	}
	s.bytes -= at.Value.(*entry).length
	s.used.Remove(at)
	delete(s.entries, id)
}

// ids lists the segments, the oldest first.
func (s *store) ids() []string {
	out := make([]string, 0, len(s.entries))
	for at := s.used.Front(); at != nil; at = at.Next() {
		out = append(out, at.Value.(*entry).id)
	}
	return out
}
