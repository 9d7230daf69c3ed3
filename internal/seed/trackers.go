package seed

import (
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const trackerLives = 5 * beatEvery // without a beat

// trackers are those that beat.
type trackers struct {
	mu       sync.Mutex
	beats    map[signal.ID]time.Time // guarded by mu: the last of each
	newcomer bool                    // guarded by mu: one was heard for the first time since newcomers was asked
}

func newTrackers() *trackers { return &trackers{beats: map[signal.ID]time.Time{}} }

// heard notes a beat, and says whether it is of a tracker that was unknown.
func (t *trackers) heard(m *bus.TrackerBeat, now time.Time) (isNew bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m.Gone {
		delete(t.beats, m.Tracker)
		return false
	}
	_, known := t.beats[m.Tracker]
	t.beats[m.Tracker] = now
	t.newcomer = t.newcomer || !known
	return !known
}

func (t *trackers) lives(id signal.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.beats[id]
	return ok
}

func (t *trackers) list() (all []signal.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.beats {
		all = append(all, id)
	}
	return all
}

func (t *trackers) expire(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, at := range t.beats {
		if now.Sub(at) > trackerLives {
			delete(t.beats, id)
		}
	}
}

// newcomers says whether trackers came that may know nothing of what is revoked, and takes that down.
func (t *trackers) newcomers() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.newcomer
	t.newcomer = false
	return was
}
