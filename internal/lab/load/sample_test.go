package load

import (
	"slices"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/armwire"
)

// measured is a run of an arm and a peer that say what the test sets.
func measured() (u *run, arm, peer *Arm) {
	arm, peer = &Arm{Name: "arm-1", gone: make(chan struct{})}, &Arm{Name: PeerName, gone: make(chan struct{})}
	u = &run{Runner: &Runner{}, arms: []*Arm{arm}, peer: peer, total: NewDelays()}
	u.second.Store(NewDelays())
	return u, arm, peer
}

// TestAnArmThatStandsStillSpoilsItsSeconds: what it did before it was suspended does not go on.
func TestAnArmThatStandsStillSpoilsItsSeconds(t *testing.T) {
	u, arm, _ := measured()
	s := newSampler(u)
	var spoiled []bool
	for second := 1; second <= 12; second++ {
		if second < 5 || second > 9 {
			arm.statistics = armwire.StatisticsBody{At: int64(second) * 1e6}
		}
		one := s.sample(time.Unix(int64(second), 0))
		spoiled = append(spoiled, slices.Contains(one.Spoiled, "an arm said nothing"))
	}
	// Those of seconds 5 to 9 are missing. One may be late.
	want := []bool{false, false, false, false, false, true, true, true, true, false, false, false}
	if !slices.Equal(spoiled, want) {
		t.Errorf("spoiled %v, want %v", spoiled, want)
	}
}
