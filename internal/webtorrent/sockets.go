package webtorrent

import (
	"maps"
	"slices"
	"sync"
)

// sockets are the clients that are connected to this tracker, so that a drain finds them.
type sockets struct {
	mu     sync.Mutex
	all    map[*client]struct{} // guarded by mu
	closed bool                 // guarded by mu
}

// enter adds a client; false once the part is closed.
func (s *sockets) enter(c *client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.all == nil {
		s.all = map[*client]struct{}{}
	}
	s.all[c] = struct{}{}
	return true
}

func (s *sockets) leave(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, c)
}

// close takes no more clients in, and returns those that are there.
func (s *sockets) close() []*client {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	return s.snapshot()
}

func (s *sockets) snapshot() []*client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.all))
}
