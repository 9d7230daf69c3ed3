package cluster

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Why peer delivery of a site is off: a register for each, so that what one switches on again another may still hold off.
const (
	ByOperator = "operator" // an operator said so
	ByHarm     = "harm"     // viewers with peers were worse off than those without
)

// SwitchReasons lists the closed set.
var SwitchReasons = []string{ByOperator, ByHarm}

// MaxSwitches is how many registers are kept: what all replicas say to each other has to fit into a message.
const MaxSwitches = 96

// Switch is a statement that peer delivery of a site is off, or on again, for one reason. Of two the later holds.
type Switch struct {
	Site, Reason string
	Off          bool
	At           time.Time // when it was said
	Until        time.Time // off: when it ends by itself; zero: when an operator ends it
}

// off says whether the statement keeps peer delivery off at a time.
func (w Switch) off(now time.Time) bool { return w.Off && (w.Until.IsZero() || now.Before(w.Until)) }

// Switches is what was said last of each site and reason. Times have the precision of a millisecond. The zero value is
// everything on. Not safe for concurrent use.
type Switches struct {
	held map[register]Switch
}

type register struct{ site, reason string }

// after says whether the statement holds and not another of the same register: the later; of two of one moment the one that
// switches off, and of these the one that does so for longer.
func (w Switch) after(o Switch) bool {
	switch {
	case !w.At.Equal(o.At):
		return w.At.After(o.At)
	case w.Off != o.Off:
		return w.Off
	}
	return !o.Until.IsZero() && (w.Until.IsZero() || w.Until.After(o.Until))
}

// Set takes a statement in and says whether it is news.
func (s *Switches) Set(w Switch) (news bool) {
	if w.Site == "" || !slices.Contains(SwitchReasons, w.Reason) {
		return false // of a version that knows more
	}
	w.At = time.UnixMilli(w.At.UnixMilli())
	if !w.Until.IsZero() {
		w.Until = time.UnixMilli(w.Until.UnixMilli())
	}
	key := register{w.Site, w.Reason}
	if old, known := s.held[key]; known && !w.after(old) {
		return false
	}
	if s.held == nil {
		s.held = map[register]Switch{}
	}
	s.held[key] = w
	if len(s.held) > MaxSwitches {
		s.drop()
	}
	return true
}

// drop forgets the oldest statement that something is on, and only then one that something is off.
func (s *Switches) drop() {
	list := s.List()
	delete(s.held, register{list[len(list)-1].Site, list[len(list)-1].Reason})
}

// Off says whether a site is off at a time, for any reason.
func (s *Switches) Off(site string, now time.Time) bool {
	return slices.ContainsFunc(SwitchReasons, func(reason string) bool { return s.OffBy(site, reason, now) })
}

// OffBy says whether a site is off at a time for one reason.
func (s *Switches) OffBy(site, reason string, now time.Time) bool {
	return s.held[register{site, reason}].off(now)
}

// Since is when a site was last switched, zero if never: a switch that has ended by itself did so at its end.
func (s *Switches) Since(site string, now time.Time) (at time.Time) {
	for _, reason := range SwitchReasons {
		w := s.held[register{site, reason}]
		last := w.At
		if w.Off && !w.off(now) {
			last = w.Until
		}
		if last.After(at) {
			at = last
		}
	}
	return at
}

// Say makes the statements that switch a site, dated after all statements that are known, whatever the clocks of their
// authors. An operator that switches a site on clears every reason.
func (s *Switches) Say(site string, off bool, reason string, until, now time.Time) []Switch {
	reasons := []string{reason}
	if !off && reason == ByOperator {
		reasons = SwitchReasons
	}
	var said []Switch
	for _, r := range reasons {
		at := now
		if old := s.held[register{site, r}]; !at.After(old.At) {
			at = old.At.Add(time.Millisecond)
		}
		said = append(said, Switch{Site: site, Reason: r, Off: off, At: at, Until: until})
	}
	return said
}

// List is every statement that holds: those that switch off first, the newest first among each.
func (s *Switches) List() []Switch {
	list := slices.Collect(maps.Values(s.held))
	rank := func(w Switch) int {
		if w.Off {
			return 0
		}
		return 1
	}
	slices.SortFunc(list, func(a, b Switch) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), b.At.Compare(a.At), cmp.Compare(a.Site, b.Site), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}
