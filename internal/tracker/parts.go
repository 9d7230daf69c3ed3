package tracker

import (
	"github.com/leeway-video/leeway/internal/cluster"
	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// sortedBy is what a member is sorted into parts by: those of a group stay together, and those behind one address.
func sortedBy(group, address string, session signal.ID) []byte {
	switch {
	case group != "":
		return []byte("group " + group)
	case address != "":
		return []byte("address " + address)
	}
	return session[:]
}

// countLeaving counts the members that belong elsewhere.
func (s *housed) countLeaving() {
	s.leaving = 0
	for m := range s.Members() {
		if s.elsewhere(m.Group, m.Address, m.ID) != nil {
			s.leaving++
		}
	}
}

// elsewhere is the part that a session belongs to by now, if that is not this one.
func (s *housed) elsewhere(group, address string, session signal.ID) *bus.Part {
	to := s.part.Toward(cluster.Hash(sortedBy(group, address, session)), s.level)
	if to == s.part {
		return nil
	}
	return &bus.Part{Part: to.Number, Level: to.Level}
}
