package swarm

// A member is not introduced to one subnet alone while there are others: what it is told of a title would be what one network
// says (spec/tracker-protocol.md, "Swarms"). Neighbors in its own subnet are close, and have more.

// share is how many more of a subnet a member may be introduced to, out of those that it has met and those that it asks for.
type share struct {
	own        string         // the member's subnet
	ownMost    int            // three quarters
	othersMost int            // half
	met        map[string]int // by subnet
}

func (s *Swarm) shareOf(self *Member, n int) *share {
	sh, total := &share{own: self.Subnet, met: map[string]int{}}, n
	for id := range s.met[self.ID] {
		if m := s.members[id]; m != nil && m.Subnet != "" {
			sh.met[m.Subnet]++
			total++
		}
	}
	sh.ownMost, sh.othersMost = max(1, total-max(1, total/4)), (total+1)/2
	return sh
}

// room is how many more of a subnet there may be. What is unknown is no subnet.
func (sh *share) room(subnet string) int {
	most := sh.othersMost
	if subnet == sh.own {
		most = sh.ownMost
	}
	return most - sh.met[subnet]
}

// add puts a candidate among the n best, in order, of which each subnet has its share. A nil share is everything.
func (sh *share) add(best []rank, r rank, n int) []rank {
	if len(best) == n && best[n-1].compare(&r) <= 0 {
		return best // most of many
	}
	subnet := r.member.Subnet
	if sh == nil || subnet == "" {
		return insert(best, r, n)
	}
	last, of := -1, 0
	for i := range best {
		if best[i].member.Subnet == subnet {
			last = i
			of++
		}
	}
	if room := sh.room(subnet); of >= room {
		if last < 0 || best[last].compare(&r) <= 0 {
			return best
		}
		best = append(best[:last], best[last+1:]...) // it takes the place of the last of its subnet
	}
	return insert(best, r, n)
}
