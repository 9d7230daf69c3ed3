package tracker

import (
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// naming is a title message to be sent.
type naming struct {
	seeds []signal.ID
	title bus.Title
}

// settled is how long a swarm has to be at a home before its members' votes move a manifest: when the home of a swarm changes, its
// members come one after the other, and the first of them are no majority.
func (h *home) settled(s *housed, now time.Time) bool {
	return s.part.Number == 0 && now.Sub(s.made) >= h.roster.timeout
}

// owes says whether seeds have to be told of a swarm with members now.
func (h *home) owes(s *housed, now time.Time) bool {
	n, since := s.Viewers(), now.Sub(s.named)
	switch {
	case s.Manifest() == "":
		return false
	case since >= titleEvery:
		return true
	case since < titleHold && (n == s.told.Viewers || min(n, s.told.Viewers) > fewViewers):
		return false
	}
	return n != s.told.Viewers || h.settled(s, now) && (!s.told.Chosen || s.told.Manifest != s.Manifest() || s.told.Beside != s.Beside())
}

// due notes the title message that a swarm owes its seeds, and says whether it owes one. It forgets a swarm that is empty. Under mu.
func (h *home) due(key signal.ID, s *housed, now time.Time) (owes bool) {
	if s == nil {
		return false
	}
	if s.Len() == 0 {
		delete(h.swarms, key)
		if s.named.IsZero() || s.part.Number != 0 { // other parts go on
			return false
		}
	} else if !h.owes(s, now) {
		return false
	}
	if h.roster.drains.Load() { // its viewers leave it for another tracker, and not the title
		return false
	}
	n := s.Viewers()
	seeds, fleet := h.roster.serving(s.site, s.id, n)
	if len(seeds) == 0 {
		return false
	}
	manifest := s.Manifest()
	title := bus.Title{
		Site: s.site, Title: s.title, Manifest: manifest, Swarm: s.id, Viewers: n, Beside: s.Beside(), Chosen: manifest != "" && h.settled(s, now),
	}
	if s.level == 0 { // of a parted swarm each home knows a part
		credited := s.Credited()
		title.Credited = &credited
	}
	told := slices.Clone(seeds)
	if fleet {
		title.Seeds = seeds
		for _, seed := range s.seeds { // a seed that serves it no more is to know those that do, for the viewers that it has
			if !slices.Contains(told, seed) {
				told = append(told, seed)
			}
		}
	}
	s.named, s.told, s.seeds = now, title, seeds
	h.owed = append(h.owed, naming{told, title})
	return true
}

// tell sends the title messages that are owed, one after the other: a seed believes the last. A goroutine that sends already sends these too.
func (h *home) tell() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.telling {
		return
	}
	h.telling = true
	for len(h.owed) > 0 {
		titles := h.owed
		h.owed = nil
		h.mu.Unlock()
		for _, n := range titles {
			for _, seed := range n.seeds {
				h.Publish(bus.SubjectSeedDeliver(seed), &bus.SeedDelivery{Kind: bus.KindTitle, Title: &n.title})
			}
		}
		h.mu.Lock()
	}
	h.telling = false
}
