package access

import "net/netip"

// Shares bounds what is taken of something: by all together, and by each network. It is not safe for concurrent use. The zero value lends
// nothing.
type Shares struct {
	Most int64 // what all networks may have together
	One  int64 // what a network may have of it

	all      int64
	networks map[netip.Prefix]int64
}

// Full says whether there is no room for so much: for all networks together, and for this one.
func (s *Shares) Full(network netip.Prefix, amount int64) (forAll, forOne bool) {
	return s.all+amount > s.Most, s.networks[network]+amount > s.One
}

// Take takes so much for a network; false: there is no room for it, and nothing is taken.
func (s *Shares) Take(network netip.Prefix, amount int64) bool {
	if forAll, forOne := s.Full(network, amount); forAll || forOne {
		return false
	}
	if s.networks == nil {
		s.networks = map[netip.Prefix]int64{}
	}
	s.all += amount
	s.networks[network] += amount
	return true
}

// Give gives back what a network took.
func (s *Shares) Give(network netip.Prefix, amount int64) {
	s.all -= amount
	if s.networks[network] -= amount; s.networks[network] == 0 {
		delete(s.networks, network)
	}
}

// Taken is what is taken, and by how many networks.
func (s *Shares) Taken() (all int64, networks int) { return s.all, len(s.networks) }
