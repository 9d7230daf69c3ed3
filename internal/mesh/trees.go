package mesh

import "slices"

// place is where the node stands in the tree of a stripe.
func (m *Mesh) place(stripe int) Place {
	t := &m.trees[stripe]
	p := Place{Rank: None}
	switch {
	case m.cfg.Seed:
		p.Rank, p.Path = 0, []ID{m.cfg.Self}
	case t.parent != (ID{}):
		above := m.peers[t.parent].places[stripe]
		p.Rank, p.Path = above.Rank, append(slices.Clip(above.Path), m.cfg.Self)
	case m.sources:
		p.Rank, p.Path = ownRank(m, stripe), []ID{m.cfg.Self}
	default:
		return p
	}
	p.Room = uint8(min(m.room(stripe), MaxSlots))
	if len(p.Path) >= MaxPath {
		p.Room = 0
	}
	p.Least = MaxSlots
	for _, c := range t.children {
		p.Least = min(p.Least, c.slots)
	}
	return p
}

// whole says whether there is to be one source of all stripes.
func whole(m *Mesh) bool { return m.cfg.Whole && !m.seeded }

// ownRank is the rank of the node as the source of a stripe.
func ownRank(m *Mesh, stripe int) uint64 {
	if whole(m) {
		return SourceRank(m.cfg.Self, 0, m.cfg.Slots)
	}
	return SourceRank(m.cfg.Self, stripe, m.uplink.slots)
}

// room is how many further children the node takes in a stripe.
func (m *Mesh) room(stripe int) int {
	left := m.uplink.slots - fed(m)
	if m.cfg.PerStripe > 0 {
		left = min(left, m.cfg.PerStripe-len(m.trees[stripe].children))
	}
	return max(0, left)
}

// feeds says whether a peer with such a place can be a parent: it is fed, not by this node, and the path has room for one more.
func (m *Mesh) feeds(p Place) bool {
	return p.Rank != None && len(p.Path) < MaxPath && !slices.Contains(p.Path, m.cfg.Self)
}

// outranks says whether a subscriber takes the place of a child: it passes on to more than twice as many.
func outranks(slots, least int) bool { return slots > 2*least+1 }

// admit answers a subscription.
func (m *Mesh) admit(now int64, stripe int, from ID, slots uint8) {
	t := &m.trees[stripe]
	slots = min(slots, MaxChildren)
	if i := slices.IndexFunc(t.children, func(c child) bool { return c.id == from }); i >= 0 {
		t.children[i].slots, t.children[i].until = slots, now+LeaseTime
		return
	}
	p := m.place(stripe)
	if p.Rank == None || len(p.Path) >= MaxPath || slices.Contains(p.Path, from) || m.peers[from].child.until > now {
		m.send(from, Message{Kind: End, Stripe: stripe})
		return
	}
	if p.Room == 0 {
		i := m.weakest(stripe)
		if i < 0 || !outranks(int(slots), int(t.children[i].slots)) || now-t.displaced < Trial {
			m.send(from, Message{Kind: End, Stripe: stripe})
			return
		}
		t.displaced = now
		m.send(t.children[i].id, Message{Kind: End, Stripe: stripe})
		t.children = slices.Delete(t.children, i, i+1)
	}
	t.children = append(t.children, child{from, slots, now + LeaseTime})
}

// weakest is the child of a stripe that passes on to the fewest; the latest of several.
func (m *Mesh) weakest(stripe int) int {
	at := -1
	for i, c := range m.trees[stripe].children {
		if at < 0 || c.slots <= m.trees[stripe].children[at].slots {
			at = i
		}
	}
	return at
}

// expire ends leases that have run out and trials that brought nothing. A peer that was not to bring anything is not avoided.
func (m *Mesh) expire(now int64, stripe int) {
	t := &m.trees[stripe]
	t.children = slices.DeleteFunc(t.children, func(c child) bool {
		if c.until <= now {
			m.send(c.id, Message{Kind: End, Stripe: stripe})
		}
		return c.until <= now
	})
	if t.next != (ID{}) && (m.holds || now-t.asked >= Trial) {
		if !m.holds {
			m.peers[t.next].avoid(now)
		}
		m.send(t.next, Message{Kind: Unsubscribe, Stripe: stripe})
		t.next = ID{}
	}
	if t.parent != (ID{}) && now-t.renewed >= Renewal {
		t.renewed = now
		m.peers[t.parent].parent.length = 0 // it has kept its word for as long
		m.send(t.parent, Message{Kind: Subscribe, Stripe: stripe, Slots: uint8(min(m.uplink.slots, MaxSlots))})
	}
}

// seek subscribes to the best peer that is better than what the node has. The parent stays until the new one has sent something.
func (m *Mesh) seek(now int64, stripe int) {
	t := &m.trees[stripe]
	if whole(m) && m.sources && t.parent != (ID{}) && m.place(stripe).Rank > ownRank(m, stripe) {
		m.drop(stripe) // there is to be one source of all stripes: the same that it would be
	}
	if t.next != (ID{}) || m.holds {
		return
	}
	below := m.place(stripe).Rank
	if t.missed > 0 {
		below++ // another one of the same tree is as good
	}
	best := candidate(m, now, stripe, below)
	if best == (ID{}) {
		return
	}
	t.next, t.asked = best, now
	m.send(best, Message{Kind: Subscribe, Stripe: stripe, Slots: uint8(min(m.uplink.slots, MaxSlots))})
}

// candidate is the best peer that can be the parent of a stripe and whose rank is below a bound; the zero ID: there is none.
func candidate(m *Mesh, now int64, stripe int, below uint64) ID {
	var best ID
	var at Place
	for _, id := range m.order {
		p := m.peers[id]
		place := p.places[stripe]
		if place.Rank >= below || p.parent.until > now || id == m.trees[stripe].parent || !m.feeds(place) {
			continue
		}
		if place.Room == 0 && !outranks(m.uplink.slots, int(place.Least)) {
			continue
		}
		if best == (ID{}) || better(id, place, best, at) {
			best, at = id, place
		}
	}
	return best
}

// Leads says whether the node is to be the source of a stripe: it takes children and has no parent, and no peer can be one whose tree is
// preferred to the node's own. It can be the source if certificates reach it.
func Leads(m *Mesh, now int64, stripe int) bool {
	return m.uplink.slots > 0 && m.trees[stripe].parent == (ID{}) &&
		candidate(m, now, stripe, ownRank(m, stripe)) == (ID{})
}

// better compares two peers that could be the parent: the tree of the lower rank, the shorter path, the one with more room.
func better(a ID, pa Place, b ID, pb Place) bool {
	switch {
	case pa.Rank != pb.Rank:
		return pa.Rank < pb.Rank
	case len(pa.Path) != len(pb.Path):
		return len(pa.Path) < len(pb.Path)
	case pa.Room != pb.Room:
		return pa.Room > pb.Room
	}
	return compare(a, b) < 0
}

// tell announces a place that has changed to all peers, but not too often.
func (m *Mesh) tell(now int64, stripe int) {
	t := &m.trees[stripe]
	p := m.place(stripe)
	if p.same(t.told) || now-t.toldAt < TellEvery {
		return
	}
	t.told, t.toldAt = p, now
	for _, id := range m.order {
		m.send(id, Message{Kind: Tell, Stripe: stripe, Place: p})
	}
}
