package rtclink

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/ice/v4"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// trickled notes the candidates that an owner hears of.
type trickled struct {
	transfer.LinkEvents
	heard []transfer.Candidate
}

func (e *trickled) Candidate(c transfer.Candidate) { e.heard = append(e.heard, c) }

func gathers(hosts int) (*gathering, *trickled) {
	e := &trickled{}
	l := &life{}
	l.begin(func(peer.CloseReason, []byte, bool) {})
	return &gathering{life: l, mid: "0", events: e, hosts: hosts, complete: make(chan struct{})}, e
}

func hostAt(t *testing.T, address string) ice.Candidate {
	t.Helper()
	c, err := ice.NewCandidateHost(&ice.CandidateHostConfig{Network: "udp", Address: address, Port: 4600, Component: 1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func reflexiveAt(t *testing.T, address string) ice.Candidate {
	t.Helper()
	c, err := ice.NewCandidateServerReflexive(&ice.CandidateServerReflexiveConfig{
		Network: "udp", Address: address, Port: 4600, Component: 1, RelAddr: "192.0.2.1", RelPort: 4600,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAddressesInTimeAreDescribed: with the last address of the socket the description waits no longer; what a server says is an event.
func TestAddressesInTimeAreDescribed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, e := gathers(2)
		defer g.life.cancel()
		g.candidate(hostAt(t, "192.0.2.1"))
		g.candidate(reflexiveAt(t, "198.51.100.7"))
		g.candidate(hostAt(t, "192.0.2.2"))
		began := time.Now()
		if d := g.description(); len(d) != 2 || time.Since(began) != 0 {
			t.Errorf("%d addresses described after %v", len(d), time.Since(began))
		}
		g.candidate(nil)
		if len(e.heard) != 2 || e.heard[0].Mid != "0" || e.heard[0].End || !e.heard[1].End {
			t.Errorf("heard %+v", e.heard)
		}
	})
}

// TestLateAddressesAreTrickled: the description waits gatherWait and no longer for addresses that do not come.
func TestLateAddressesAreTrickled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, e := gathers(3)
		defer g.life.cancel()
		g.candidate(hostAt(t, "192.0.2.1"))
		began := time.Now()
		if d := g.description(); len(d) != 1 || time.Since(began) != gatherWait {
			t.Errorf("%d addresses described after %v", len(d), time.Since(began))
		}
		g.candidate(hostAt(t, "192.0.2.2"))
		if len(e.heard) != 1 {
			t.Errorf("heard %+v", e.heard)
		}
		g.life.closing.Store(true)
		g.candidate(hostAt(t, "192.0.2.3"))
		g.candidate(nil)
		if len(e.heard) != 1 {
			t.Errorf("heard %+v of a link that is closing", e.heard)
		}
	})
}
