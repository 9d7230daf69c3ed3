package cluster

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

var noon = time.UnixMilli(1_790_000_000_000)

func TestTheLaterStatementHolds(t *testing.T) {
	var s Switches
	off := Switch{Site: "a", Reason: ByOperator, Off: true, At: noon}
	on := Switch{Site: "a", Reason: ByOperator, At: noon.Add(time.Second)}
	if !s.Set(off) || s.Set(off) || !s.Off("a", noon) || s.Off("b", noon) {
		t.Error("off, once news")
	}
	if !s.Set(on) || s.Set(off) || s.Off("a", noon) {
		t.Error("on again, and what was said before comes late")
	}
	if again := s.Say("a", true, ByOperator, time.Time{}, noon.Add(-time.Hour)); !s.Set(again[0]) || !s.Off("a", noon) {
		t.Error("a replica with a slow clock is heard too")
	}
	if s.Set(Switch{Site: "a", Reason: "mood", Off: true, At: noon.Add(time.Hour)}) || s.Set(Switch{Reason: ByHarm, Off: true, At: noon}) {
		t.Error("a statement of no known reason, or of no site, is none")
	}
}

func TestAnOperatorLiftsEveryReasonAndHarmOnlyItsOwn(t *testing.T) {
	var s Switches
	s.Set(Switch{Site: "a", Reason: ByOperator, Off: true, At: noon})
	s.Set(Switch{Site: "a", Reason: ByHarm, Off: true, At: noon, Until: noon.Add(time.Hour)})
	for _, w := range s.Say("a", false, ByHarm, time.Time{}, noon) {
		s.Set(w)
	}
	if s.OffBy("a", ByHarm, noon) || !s.Off("a", noon) {
		t.Error("harm is over, the operator's word holds")
	}
	s.Set(Switch{Site: "a", Reason: ByHarm, Off: true, At: noon.Add(time.Second)})
	for _, w := range s.Say("a", false, ByOperator, time.Time{}, noon) {
		s.Set(w)
	}
	if s.Off("a", noon) {
		t.Error("the operator's on lifts all")
	}
}

func TestASwitchEndsByItself(t *testing.T) {
	var s Switches
	end := noon.Add(time.Hour)
	s.Set(Switch{Site: "a", Reason: ByHarm, Off: true, At: noon, Until: end})
	for _, c := range []struct {
		now   time.Time
		off   bool
		since time.Time
	}{{noon, true, noon}, {end.Add(-time.Millisecond), true, noon}, {end, false, end}, {end.Add(time.Hour), false, end}} {
		if s.Off("a", c.now) != c.off || !s.Since("a", c.now).Equal(c.since) {
			t.Errorf("at %s: off %v since %s", c.now.Sub(noon), s.Off("a", c.now), s.Since("a", c.now).Sub(noon))
		}
	}
	if !s.Since("b", noon).IsZero() {
		t.Error("what was never switched has no moment")
	}
}

// TestReplicasAgreeWhateverTheOrder: statements travel by several ways and are said again.
func TestReplicasAgreeWhateverTheOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var said []Switch
	for range 200 {
		said = append(said, Switch{
			Site: fmt.Sprint("s", random.IntN(3)), Reason: SwitchReasons[random.IntN(2)], Off: random.IntN(2) == 0,
			At: noon.Add(time.Duration(random.IntN(20)) * time.Millisecond), Until: []time.Time{{}, noon.Add(time.Hour), noon.Add(time.Minute)}[random.IntN(3)],
		})
	}
	var first []Switch
	for run := range 50 {
		var s Switches
		random.Shuffle(len(said), func(i, j int) { said[i], said[j] = said[j], said[i] })
		for _, w := range said {
			s.Set(w)
		}
		if run == 0 {
			first = s.List()
		} else if !reflect.DeepEqual(first, s.List()) {
			t.Fatalf("run %d: %v, not %v", run, s.List(), first)
		}
	}
}

func TestSwitchesAreBoundedAndOffStays(t *testing.T) {
	var s Switches
	s.Set(Switch{Site: "dark", Reason: ByOperator, Off: true, At: noon.Add(-time.Hour)})
	for i := range 3 * MaxSwitches {
		s.Set(Switch{Site: fmt.Sprint("s", i), Reason: ByOperator, At: noon.Add(time.Duration(i) * time.Second)})
	}
	if n := len(s.List()); n != MaxSwitches || !s.Off("dark", noon) {
		t.Errorf("%d are kept, dark is off: %v", n, s.Off("dark", noon))
	}
}
