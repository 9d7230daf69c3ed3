package mesh

import "testing"

// TestAChildThatDoesNotReadTakesNoPlacesOfOthers: it subscribes in all stripes as soon as it may, says that it takes as many children as
// there can be, and does not read. The node goes on to feed others.
func TestAChildThatDoesNotReadTakesNoPlacesOfOthers(t *testing.T) {
	const part, step, begin, end, strange = 500_000, 100_000, 10_000_000, 310_000_000, byte(99)
	m := node(1, 8)
	m.CanSource(true)
	fed, ended := 0, 0
	for now := int64(0); now < end; now += step {
		m.Decide(now)
		for n := byte(2); n < 10; n++ { // honest ones subscribe again
			stripe := int(n) % 4
			m.Heard(now, id(n), Message{Kind: Subscribe, Stripe: stripe, Slots: 2})
			m.Waited(now, id(n), stripe, part/10, part)
		}
		if now < begin {
			continue
		}
		for stripe := range 4 {
			m.Heard(now, id(strange), Message{Kind: Subscribe, Stripe: stripe, Slots: MaxSlots})
		}
		for stripe := range 4 {
			for _, c := range m.Children(stripe) {
				if c == id(strange) {
					m.Waited(now, c, stripe, part, part)
					ended++
				} else {
					fed++
				}
			}
		}
	}
	if mean := float64(fed) * step / (end - begin); mean < 6 || ended == 0 {
		t.Errorf("the node fed %.1f of 8 honest children in the mean; pieces waited for the other one %d times", mean, ended)
	}
}

// TestAPeerThatSendsOnePieceIsAvoidedForLonger: it is a parent again and again, sends one piece, and then nothing.
func TestAPeerThatSendsOnePieceIsAvoidedForLonger(t *testing.T) {
	m := node(1, 8)
	m.Heard(0, id(0xff), seedPlace(2))
	asked, awaited := 0, int64(0)
	for now := int64(0); now < 120_000_000; now += 100_000 {
		if said(m.Decide(now), id(0xff), Subscribe) > 0 && m.Parent(0) == (ID{}) {
			asked++
			m.Arrived(now, id(0xff), 0)
		}
		if m.Parent(0) != (ID{}) {
			awaited += 100_000
			if now%500_000 == 0 {
				m.Missed(now, 0)
			}
		}
	}
	if asked > 10 || asked < 3 || awaited > 12_000_000 || awaited == 0 {
		t.Errorf("it was asked %d times in two minutes, and waited for for %d ms", asked, awaited/1000)
	}
}

// TestMoreSlotsThanAViewerHasDisplaceNone: a peer says that it takes 255 children. Those that take as many as a viewer may keep their places.
func TestMoreSlotsThanAViewerHasDisplaceNone(t *testing.T) {
	m := node(1, 4)
	m.CanSource(true)
	for n := byte(2); n < 6; n++ {
		m.Heard(0, id(n), Message{Kind: Subscribe, Stripe: int(n) % 4, Slots: MaxChildren / 2})
	}
	for now := int64(0); now < 20_000_000; now += 2 * Trial {
		for stripe := range 4 {
			m.Heard(now, id(99), Message{Kind: Subscribe, Stripe: stripe, Slots: MaxSlots})
		}
	}
	if len(m.AllChildren()) != 4 || m.Children(2)[0] != id(2) {
		t.Errorf("the children are %v", m.AllChildren())
	}
}
