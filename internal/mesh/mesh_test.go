package mesh

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func id(n byte) ID { return ID{n} }

// node of a test has room for so many children in four stripes.
func node(n byte, slots int) *Mesh { return New(Config{Self: id(n), Stripes: 4, Slots: slots}) }

// seedPlace is what a seed tells.
func seedPlace(room uint8) Message {
	return Message{Kind: Tell, Place: Place{Path: []ID{id(0xff)}, Room: room, Least: MaxSlots}}
}

// said are the messages of a kind to a peer.
func said(sends []Send, to ID, kind Kind) (n int) {
	for _, s := range sends {
		if s.To == to && s.Kind == kind {
			n++
		}
	}
	return n
}

func TestAParentIsAwaitedOnceItHasSentAPiece(t *testing.T) {
	m := node(1, 8)
	m.Heard(0, id(0xff), seedPlace(2))
	if sends := m.Decide(0); said(sends, id(0xff), Subscribe) != 1 || m.Parent(0) != (ID{}) {
		t.Fatalf("%+v, awaited %v", sends, m.Parent(0) != (ID{}))
	}
	m.Arrived(100_000, id(0xff), 0)
	if m.Parent(0) == (ID{}) || len(m.Path(0)) != 2 || m.Parent(1) != (ID{}) {
		t.Errorf("awaited %v, path %v", m.Parent(0) != (ID{}), m.Path(0))
	}
	m.Heard(200_000, id(2), Message{Kind: Subscribe, Slots: 3})
	if !slices.Equal(m.Children(0), []ID{id(2)}) {
		t.Errorf("children %v", m.Children(0))
	}
}

func TestASilentPeerIsLeftAlone(t *testing.T) {
	m := node(1, 8)
	m.Heard(0, id(0xff), seedPlace(2))
	m.Decide(0)
	avoided, asked := int64(0), int64(0)
	for now := int64(100_000); now < 120_000_000; now += 100_000 {
		sends := m.Decide(now)
		if said(sends, id(0xff), Subscribe) > 0 {
			if asked > 0 && now-asked < avoided {
				t.Errorf("asked again after %d µs", now-asked)
			}
			asked, avoided = now, min(MaxAvoid, max(MinAvoid, 2*avoided))
		}
		if m.Parent(0) != (ID{}) {
			t.Fatal("it is waited for")
		}
	}
	if avoided != MaxAvoid {
		t.Errorf("it was left alone for %d µs at last", avoided)
	}
}

func TestAParentThatMissesTwoPartsInARowIsDropped(t *testing.T) {
	m := node(1, 8)
	m.Heard(0, id(0xff), seedPlace(2))
	m.Decide(0)
	m.Arrived(1, id(0xff), 0)
	m.Missed(2, 0)
	m.Arrived(3, id(0xff), 0)
	m.Missed(4, 0)
	if m.Parent(0) == (ID{}) {
		t.Error("two parts that are not in a row")
	}
	if hops, lost := m.Trees(); hops != 1 || lost != 0 {
		t.Errorf("%d hops, %d lost", hops, lost)
	}
	m.Missed(5, 0)
	if hops, lost := m.Trees(); hops != 0 || lost != 1 {
		t.Errorf("%d hops, %d lost", hops, lost)
	}
	if sends := m.Decide(6); m.Parent(0) != (ID{}) || said(sends, id(0xff), Unsubscribe) != 1 || said(sends, id(0xff), Subscribe) != 0 {
		t.Errorf("awaited %v: %+v", m.Parent(0) != (ID{}), sends)
	}
}

// TestTheOldParentStaysUntilTheNewOneHasSentAPiece: a source gives way to a seed's tree.
func TestTheOldParentStaysUntilTheNewOneHasSentAPiece(t *testing.T) {
	m := node(1, 8)
	m.Heard(0, id(2), Message{Kind: Tell, Place: Place{Rank: 7, Path: []ID{id(2)}, Room: 1}})
	m.Decide(0)
	m.Arrived(1, id(2), 0)
	m.Heard(2, id(0xff), seedPlace(2))
	m.Decide(3)
	if !slices.Equal(m.Parents(), []ID{id(2), id(0xff)}) || m.Path(0)[0] != id(2) {
		t.Errorf("parents %v, path %v", m.Parents(), m.Path(0))
	}
	m.Arrived(4, id(0xff), 0)
	if sends := m.Decide(5); !slices.Equal(m.Parents(), []ID{id(0xff)}) || said(sends, id(2), Unsubscribe) != 1 {
		t.Errorf("parents %v: %+v", m.Parents(), sends)
	}
}

// TestParentsThatAreLostAreCounted, however that came; one that gives way to a better one is not.
func TestParentsThatAreLostAreCounted(t *testing.T) {
	for _, c := range []struct {
		name string
		lose func(m *Mesh)
		lost int
	}{
		{"refuses", func(m *Mesh) { m.Heard(3, id(2), Message{Kind: End}) }, 1},
		{"is gone", func(m *Mesh) { m.Gone(id(2)) }, 1},
		{"is fed by this node", func(m *Mesh) {
			m.Heard(3, id(2), Message{Kind: Tell, Place: Place{Rank: 7, Path: []ID{id(1), id(2)}}})
		}, 1},
		{"is one of no tree that matters", func(m *Mesh) { m.Gone(id(9)) }, 0},
		{"gives way", func(m *Mesh) {
			m.Heard(3, id(0xff), seedPlace(2))
			m.Decide(4)
			m.Arrived(5, id(0xff), 0)
		}, 0},
	} {
		m := node(1, 8)
		m.Heard(0, id(2), Message{Kind: Tell, Place: Place{Rank: 7, Path: []ID{id(5), id(2)}, Room: 1}})
		m.Decide(0)
		m.Arrived(1, id(2), 0)
		if hops, _ := m.Trees(); hops != 2 {
			t.Errorf("%d hops", hops)
		}
		c.lose(m)
		if _, lost := m.Trees(); lost != c.lost {
			t.Errorf("a parent that %s: %d lost", c.name, lost)
		}
	}
}

func TestALoopIsRefusedAndLeft(t *testing.T) {
	m := node(1, 8)
	own := Place{Rank: 0, Path: []ID{id(0xff), id(1), id(2)}, Room: 5}
	m.Heard(0, id(2), Message{Kind: Tell, Place: own})
	if sends := m.Decide(0); said(sends, id(2), Subscribe) > 0 {
		t.Error("it subscribes to a peer that it feeds")
	}
	m.Heard(1, id(3), Message{Kind: Tell, Place: Place{Path: []ID{id(0xff), id(3)}, Room: 1}})
	m.Decide(1)
	m.Arrived(2, id(3), 0)
	m.Heard(3, id(3), Message{Kind: Tell, Place: Place{Path: []ID{id(0xff), id(1), id(3)}, Room: 1}})
	if m.Parent(0) != (ID{}) {
		t.Error("its parent is fed by itself")
	}
	m.Heard(4, id(4), Message{Kind: Tell, Place: Place{Path: []ID{id(0xff), id(4)}, Room: 1}})
	m.Decide(4)
	m.Arrived(5, id(4), 0)
	m.Heard(6, id(0xff), Message{Kind: Subscribe})
	if len(m.Children(0)) > 0 {
		t.Error("it takes a child that is above it")
	}
}

// TestAStrongSubscriberTakesThePlaceOfALeaf, and not twice in a second and a half.
func TestAStrongSubscriberTakesThePlaceOfALeaf(t *testing.T) {
	m := New(Config{Self: id(0xff), Stripes: 4, Slots: 8, PerStripe: 2, Seed: true})
	for _, n := range []byte{1, 2} {
		m.Heard(0, id(n), Message{Kind: Subscribe})
	}
	m.Heard(1, id(3), Message{Kind: Subscribe, Slots: 1})
	m.Heard(2, id(4), Message{Kind: Subscribe, Slots: 9})
	m.Heard(3, id(5), Message{Kind: Subscribe, Slots: 9})
	if got := m.Children(0); !slices.Equal(got, []ID{id(1), id(4)}) {
		t.Errorf("children %v", got)
	}
	sends := m.Decide(4)
	if said(sends, id(2), End) != 1 || said(sends, id(3), End) != 1 || said(sends, id(5), End) != 1 {
		t.Errorf("%+v", sends)
	}
	m.Heard(2+Trial, id(5), Message{Kind: Subscribe, Slots: 9})
	if got := m.Children(0); !slices.Equal(got, []ID{id(4), id(5)}) {
		t.Errorf("children %v", got)
	}
}

// TestASubscriptionIsALease, so that a child that has gone costs no more than it.
func TestASubscriptionIsALease(t *testing.T) {
	m := New(Config{Self: id(0xff), Stripes: 4, Slots: 8, PerStripe: 2, Seed: true})
	m.Heard(0, id(1), Message{Kind: Subscribe})
	m.Heard(0, id(2), Message{Kind: Subscribe})
	m.Heard(Renewal, id(2), Message{Kind: Subscribe})
	if sends := m.Decide(LeaseTime); !slices.Equal(m.Children(0), []ID{id(2)}) || said(sends, id(1), End) != 1 {
		t.Errorf("children %v: %+v", m.Children(0), sends)
	}
}

func TestAChildRenewsItsLease(t *testing.T) {
	m := node(1, 8)
	m.Heard(0, id(0xff), seedPlace(2))
	m.Decide(0)
	m.Arrived(1, id(0xff), 0)
	n := 0
	for now := int64(0); now <= 3*Renewal; now += 100_000 {
		n += said(m.Decide(now), id(0xff), Subscribe)
	}
	if n != 3 {
		t.Errorf("renewed %d times", n)
	}
}

// TestAPeerThatChangesItsPlaceAllTheTimeMakesFewMessages: what it says is not passed on at its pace.
func TestAPeerThatChangesItsPlaceAllTheTimeMakesFewMessages(t *testing.T) {
	m := node(1, 8)
	m.Linked(id(3))
	m.Heard(0, id(2), Message{Kind: Tell, Place: Place{Rank: 7, Path: []ID{id(2)}, Room: 1}})
	m.Decide(0)
	m.Arrived(1, id(2), 0)
	n := 0
	for now := int64(0); now < 10_000_000; now += 1_000 {
		m.Heard(now, id(2), Message{Kind: Tell, Place: Place{Rank: 7, Path: []ID{id(byte(10 + now/1000%100)), id(2)}, Room: 1}})
		n += said(m.Decide(now), id(3), Tell)
	}
	if most := 10_000_000 / TellEvery; n > most || n < most/2 {
		t.Errorf("%d messages in 10 s, of %d", n, most)
	}
}

func TestWhatIsOutOfRangeIsIgnored(t *testing.T) {
	m := node(1, 8)
	for _, stripe := range []int{-1, 4, 1 << 20} {
		m.Heard(0, id(2), Message{Kind: Subscribe, Stripe: stripe})
		m.Heard(0, id(2), Message{Kind: Tell, Stripe: stripe})
	}
	m.Heard(0, id(2), Message{Kind: 99})
	if sends := m.Decide(0); len(sends) > 0 {
		t.Errorf("%+v", sends)
	}
}

// TestTreesOfManyNodesHaveNoLoops: nodes come, go and lie still, and links break, at random. Where all is told at last, each path is the
// parent's and one more, and no node has more children than slots.
func TestTreesOfManyNodesHaveNoLoops(t *testing.T) {
	for trace := range uint64(4) {
		c := newColony(trace)
		for range 150 {
			c.step(false)
		}
		for range 100 {
			c.step(true)
		}
		c.check(t, trace)
	}
}

// colony is nodes that are all linked. Messages arrive with the next step; until the end some links break and are made again.
type colony struct {
	rand  *rand.Rand
	now   int64
	nodes map[ID]*Mesh
	slots map[ID]int
	order []ID
}

func newColony(trace uint64) *colony {
	c := &colony{rand: rand.New(rand.NewPCG(trace, 1)), nodes: map[ID]*Mesh{}, slots: map[ID]int{}}
	seed := New(Config{Self: id(0xff), Stripes: 4, Slots: 8, PerStripe: 2, Seed: true})
	c.add(id(0xff), seed, 8)
	return c
}

func (c *colony) add(n ID, m *Mesh, slots int) {
	for other, o := range c.nodes {
		o.Linked(n)
		m.Linked(other)
	}
	c.nodes[n], c.slots[n] = m, slots
	c.order = append(c.order, n)
}

func (c *colony) remove(n ID) {
	delete(c.nodes, n)
	c.order = slices.DeleteFunc(c.order, func(o ID) bool { return o == n })
	for _, o := range c.nodes {
		o.Gone(n)
	}
}

func (c *colony) step(calm bool) {
	c.now += 100_000
	if !calm && c.rand.IntN(6) == 0 && len(c.order) < 24 {
		n := id(byte(1 + c.rand.IntN(200)))
		if c.nodes[n] == nil {
			slots := []int{0, 3, 12}[c.rand.IntN(3)]
			m := New(Config{Self: n, Stripes: 4, Slots: slots})
			m.CanSource(c.rand.IntN(3) == 0)
			c.add(n, m, slots)
		}
	}
	if !calm && c.rand.IntN(20) == 0 && len(c.order) > 4 {
		c.remove(c.order[1+c.rand.IntN(len(c.order)-1)])
	}
	for _, n := range slices.Clone(c.order) {
		m := c.nodes[n]
		// Channels are reliable: what is lost is lost with its link, and with it what is sent behind it.
		var broken []ID
		for _, s := range m.Decide(c.now) {
			if !calm && c.rand.IntN(50) == 0 && !slices.Contains(broken, s.To) {
				broken = append(broken, s.To)
			}
			if to := c.nodes[s.To]; to != nil && !slices.Contains(broken, s.To) {
				to.Heard(c.now, n, s.Message)
			}
		}
		for _, to := range broken {
			c.relink(n, to)
		}
		for stripe := range 4 {
			if len(m.Path(stripe)) == 0 {
				continue
			}
			for _, child := range m.Children(stripe) {
				if to := c.nodes[child]; to != nil {
					to.Arrived(c.now, n, stripe)
				}
			}
		}
	}
}

func (c *colony) relink(a, b ID) {
	one, other := c.nodes[a], c.nodes[b]
	if one == nil || other == nil {
		return
	}
	one.Gone(b)
	other.Gone(a)
	one.Linked(b)
	other.Linked(a)
}

func (c *colony) check(t *testing.T, trace uint64) {
	fed := 0
	for n, m := range c.nodes {
		children := 0
		for stripe := range 4 {
			children += len(m.Children(stripe))
			path := m.Path(stripe)
			if len(path) > MaxPath {
				t.Errorf("trace %d: a path of %d", trace, len(path))
			}
			if len(path) > 1 {
				fed++
				above := path[len(path)-2]
				if c.nodes[above] == nil || !slices.Contains(c.nodes[above].Children(stripe), n) {
					t.Errorf("trace %d: %x has a parent that does not know it", trace, n[0])
				} else if !slices.Equal(c.nodes[above].Path(stripe), path[:len(path)-1]) {
					t.Errorf("trace %d: %x is at %v, its parent at %v", trace, n[0], path, c.nodes[above].Path(stripe))
				}
			}
			slices.SortFunc(path, compare)
			if len(slices.Compact(path)) != len(m.Path(stripe)) {
				t.Errorf("trace %d: a loop at %x", trace, n[0])
			}
		}
		if children > c.slots[n] {
			t.Errorf("trace %d: %x has %d children and %d slots", trace, n[0], children, c.slots[n])
		}
	}
	if fed < 2*len(c.nodes) {
		t.Errorf("trace %d: %d stripes are fed, of %d nodes", trace, fed, len(c.nodes))
	}
}
