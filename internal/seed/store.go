package seed

import (
	"container/list"
	"sync"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/segment"
)

// held is a certified segment with its bytes, immutable.
type held struct {
	id   segment.ID
	cert *certificate.Certificate
	data []byte
	sum  [32]byte // contentOf(cert)
}

func newHeld(id segment.ID, cert *certificate.Certificate, data []byte) *held {
	return &held{id: id, cert: cert, data: data, sum: contentOf(cert)}
}

// store keeps certified segments: the most recently used ones in memory, more of them on disk.
type store struct {
	sink metric.Sink
	disk *disk

	mu    sync.Mutex
	limit int64
	bytes int64                        // guarded by mu
	byID  map[segment.ID]*list.Element // guarded by mu; values are *held
	order *list.List                   // guarded by mu; front is the most recent
}

func newStore(d *disk, limit int64, sink metric.Sink) *store {
	return &store{sink: sink, disk: d, limit: limit, byID: map[segment.ID]*list.Element{}, order: list.New()}
}

// cached returns a segment that is in memory, nil if it is not.
func (s *store) cached(id segment.ID) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byID[id]
	if e == nil {
		return nil
	}
	s.order.MoveToFront(e)
	return e.Value.(*held)
}

// onDisk is how many bytes would be read for a segment, 0 if it is not on disk.
func (s *store) onDisk(id segment.ID) int64 { return s.disk.size(id) }

// get returns a segment, from disk if need be; nil if it is not held. loads has one of many that want it at once call this.
func (s *store) get(id segment.ID) *held {
	h := s.cached(id)
	if h == nil {
		if h = s.disk.load(id); h != nil {
			s.remember(h)
		}
	}
	return h
}

// put takes in a segment, in memory at once and on disk; one held under the same ID is replaced.
func (s *store) put(h *held) error {
	s.remember(h)
	return s.disk.save(h)
}

func (s *store) remember(h *held) {
	s.mu.Lock()
	s.forget(h.id)
	s.byID[h.id] = s.order.PushFront(h)
	s.bytes += int64(len(h.data))
	evicted := 0
	for s.bytes > s.limit && s.order.Len() > 1 {
		s.forget(s.order.Back().Value.(*held).id)
		evicted++
	}
	bytes := s.bytes
	s.mu.Unlock()
	s.sink.Add(mEvictions, float64(evicted), "memory")
	s.sink.Set(mStoreBytes, float64(bytes), "memory")
}

// forget drops a segment from memory. Under mu.
func (s *store) forget(id segment.ID) {
	if e := s.byID[id]; e != nil {
		s.order.Remove(e)
		delete(s.byID, id)
		s.bytes -= int64(len(e.Value.(*held).data))
	}
}

// drop forgets a segment in both tiers.
func (s *store) drop(id segment.ID) {
	s.mu.Lock()
	s.forget(id)
	bytes := s.bytes
	s.mu.Unlock()
	s.sink.Set(mStoreBytes, float64(bytes), "memory")
	s.disk.drop(id)
}

// withdraw drops what is revoked, in memory and on disk, and returns the IDs.
func (s *store) withdraw(revoked func(*certificate.Certificate) bool) []segment.ID {
	var gone []segment.ID
	s.mu.Lock()
	for e := s.order.Front(); e != nil; {
		h, next := e.Value.(*held), e.Next()
		if revoked(h.cert) {
			s.forget(h.id)
			gone = append(gone, h.id)
		}
		e = next
	}
	bytes := s.bytes
	s.mu.Unlock()
	s.sink.Set(mStoreBytes, float64(bytes), "memory")
	return append(gone, s.disk.withdraw(revoked)...)
}
