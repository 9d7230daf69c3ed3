package viewer

import (
	"slices"
	"testing"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

func TestCandidatesWaitForTheDescriptions(t *testing.T) {
	var told, added []string
	f := &facts{}
	c := trickle{facts: f, tell: func(m signal.Signal) { told = append(told, m.Kind+m.Candidate) }}
	c.local(transfer.Candidate{Candidate: "a"})
	c.remote(&signal.Signal{Kind: "candidate", Candidate: "x typ srflx"})
	if len(told)+len(added) > 0 {
		t.Fatalf("told %q, added %q before there was a description", told, added)
	}
	c.letOut()
	c.local(transfer.Candidate{End: true})
	add := func(a transfer.Candidate) error { added = append(added, a.Candidate); return nil }
	c.described(add)
	for range 2 * maxCandidates {
		c.remote(&signal.Signal{Kind: "candidate", Candidate: "y"})
	}
	if !slices.Equal(told, []string{"candidatea", "end"}) || len(added) != maxCandidates+1 || added[0] != "x typ srflx" || !f.remote || !f.gathered {
		t.Errorf("told %q, %d added, %+v", told, len(added), f)
	}
}

func TestWhatComesBeforeLinksMayBeMadeIsKept(t *testing.T) {
	var e early
	for range 2 * signal.MaxWant {
		e.name([]signal.Peer{{Role: "viewer"}})
	}
	for range 2 * keptSignals {
		e.keep(&signal.Signal{})
	}
	if e.names(false) || !e.names(true) {
		t.Error("viewers are waited for where they serve, and nowhere else")
	}
	if !e.name([]signal.Peer{{Role: "seed"}}) || !e.names(false) {
		t.Error("a seed that was named is not waited for")
	}
	if peers, signals := e.begin(); len(peers) != signal.MaxWant || len(signals) != keptSignals {
		t.Errorf("%d peers and %d signals were kept", len(peers), len(signals))
	}
	if e.name(nil) || e.keep(nil) || e.names(false) {
		t.Error("kept what came afterwards")
	}
}
