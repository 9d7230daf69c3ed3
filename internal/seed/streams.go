package seed

import (
	"log/slog"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// streams are the low-latency streams whose parts viewers follow (spec/parts.md), by title.
type streams struct {
	self   signal.ID
	supply *supply
	tasks  *tasks
	sink   metric.Sink
	log    *slog.Logger
	now    func() time.Time
	began  time.Time

	mu  sync.Mutex
	all map[*title]*sharing // guarded by mu; of titles with links that speak parts
}

func newStreams(self signal.ID, s *supply, t *tasks, sink metric.Sink, log *slog.Logger, now func() time.Time) *streams {
	return &streams{self: self, supply: s, tasks: t, sink: sink, log: log, now: now, began: now(), all: map[*title]*sharing{}}
}

// linked takes in a link whose viewer speaks parts.
func (s *streams) linked(v *viewerLink) {
	s.mu.Lock()
	one := s.all[v.title]
	if one == nil {
		one = newSharing(s, v.title)
		s.all[v.title] = one
	}
	one.links.Add(1)
	s.mu.Unlock()
	v.sharing.Store(one)
	one.linked(v)
}

// gone forgets a link.
func (s *streams) gone(v *viewerLink) {
	one := v.sharing.Swap(nil)
	if one == nil {
		return
	}
	one.gone(v)
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.links.Add(-1) == 0 {
		delete(s.all, v.title)
	}
}

// tick begins to follow what is listed by now, and leaves what no viewer follows.
func (s *streams) tick() {
	s.mu.Lock()
	all := make([]*sharing, 0, len(s.all))
	for _, one := range s.all {
		all = append(all, one)
	}
	s.mu.Unlock()
	followed := 0
	for _, one := range all {
		followed += one.review()
	}
	s.sink.Set(mPartStreams, float64(followed))
}

// ofParts says whether a message is one of parts.
func ofParts(m peer.Message) bool { return m.Type() >= peer.TypeFollow && m.Type() <= peer.TypeHold }
