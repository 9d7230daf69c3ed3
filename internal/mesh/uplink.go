package mesh

import "slices"

// uplink is what a node knows of what its uplink carries: how long pieces wait until they have left.
type uplink struct {
	slots  int   // children that the node takes now
	shrunk int64 // when it took fewer
	calm   int64 // since when no piece has waited, or since it took one more
}

// fed is how many children the node has, of all stripes together.
func fed(m *Mesh) (n int) {
	for i := range m.trees {
		n += len(m.trees[i].children)
	}
	return n
}

// Waited says how long a piece of a stripe has waited for a child until it had left or was of no use any more, and how long a part plays.
// If that is longer than a child waits, or than the part plays, the uplink does not carry so many children: that one goes, for a while, and the
// node takes no more than are left.
func (m *Mesh) Waited(now int64, to ID, stripe int, waited, part int64) {
	u, long := &m.uplink, min(awaited(part), part)
	if 2*waited <= long || m.cfg.Seed {
		return
	}
	u.calm = now
	t := &m.trees[stripe]
	at := slices.IndexFunc(t.children, func(c child) bool { return c.id == to })
	if waited <= long || now-u.shrunk < part || at < 0 {
		return
	}
	left := fed(m) - 1
	u.slots, u.shrunk = max(1, left), now
	if left > 0 {
		m.peers[to].child.begin(now, Calm, MaxApart)
		m.send(to, Message{Kind: End, Stripe: stripe})
		t.children = slices.Delete(t.children, at, at+1)
	}
}

// grow has the node take one more child if it has all that it takes, and no piece has waited for a while.
func grow(m *Mesh, now int64) {
	u := &m.uplink
	if u.slots < m.cfg.Slots && fed(m) == u.slots && now-u.calm >= Calm {
		u.slots, u.calm = u.slots+1, now
	}
}
