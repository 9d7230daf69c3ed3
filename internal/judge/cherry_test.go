package judge

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/experiment"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// stranger has sessions of a few subnets, and says whatever has a site switched off.
type stranger struct {
	n       *node
	address func(subnet, try int) netip.Addr
	subnets int
	tries   int  // sessions in a row that each subnet begins in an hour
	picks   bool // leaves without joining where it is not in the control group
}

// hour is what it does in one.
func (s *stranger) hour() {
	for subnet := range s.subnets {
		for try := range s.tries {
			if s.session(s.address(subnet, try)) {
				break
			}
		}
	}
}

// session is one session, of which it reports the worst with peers and the best without. It says whether it was of use.
func (s *stranger) session(from netip.Addr) (used bool) {
	n := s.n
	one := n.opens(from, "")
	defer one.End(nil)
	control := one.controlled()
	if s.picks && !control {
		return false
	}
	one.join()
	_, swarm := one.told()
	n.world.clock.Move(20 * time.Second)
	m := &signal.Stats{Swarm: swarm, Interval: 20_000, PlayedMs: 20_000, StartupMs: 1}
	if !control {
		m.PlayedMs, m.StallMs, m.Stalls, m.StartupMs = 1, 20_000, 1, 20_000
	}
	one.say(m)
	return true
}

// TestCherryPickingMovesNothing: for a week, strangers of a few subnets try to have the site switched off. A viewer is told its
// group in the welcome, and so is observed from before that, whether it joins then or not.
func TestCherryPickingMovesNothing(t *testing.T) {
	address := func(int, int) netip.Addr { return netip.MustParseAddr("203.0.113.7") }
	subnet := func(_, try int) netip.Addr { return netip.AddrFrom4([4]byte{203, 0, 113, byte(try)}) }
	few := func(subnet, try int) netip.Addr { return netip.AddrFrom4([4]byte{203, 0, byte(subnet), byte(try)}) }
	for name, s := range map[string]stranger{
		"one address joins when it is control":       {address: address, subnets: 1, picks: true},
		"one subnet joins when it is control":        {address: subnet, subnets: 1, picks: true},
		"three subnets join when they are control":   {address: few, subnets: 3, picks: true},
		"one address says the worst of its peers":    {address: address, subnets: 1},
		"three subnets say the worst of their peers": {address: few, subnets: 3},
	} {
		for permille, tries := range map[int]int{30: 40, 500: 4} {
			t.Run(fmt.Sprintf("%s, %d permille", name, permille), func(t *testing.T) {
				w := newWorld(t)
				s.n, s.tries = w.withControlGroup(permille), tries
				strongest := 0.0
				for hour := range 7 * 24 {
					s.hour()
					w.clock.Move(time.Hour)
					s.n.judges()
					s.n.judge.Maintain(w.clock.Now())
					for _, test := range experiment.Names {
						strongest = max(strongest, w.metrics.Value(defEvidence, "demo", test))
					}
					if off, _ := s.n.SiteSwitch("demo"); off {
						t.Fatalf("the site is off after %d hours", hour+1)
					}
				}
				t.Logf("the evidence came to %.2f of what switches the site off, %v were observed", strongest, w.counted())
				if w.counted() == 0 || strongest >= 1 {
					t.Errorf("%v observed, evidence %.2f", w.counted(), strongest)
				}
			})
		}
	}
}
