package viewer

import (
	"bytes"

	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const maxCandidates = 64 // of one link (spec/tracker-protocol.md)

// trickle passes the candidates of one link on, both ways: this side's once its description has been signaled, the other
// side's once that one's description is in.
type trickle struct {
	tell  func(signal.Signal)
	facts *facts

	ours   []transfer.Candidate
	told   bool
	theirs []signal.Signal
	heard  int                            // candidates of the other side
	add    func(transfer.Candidate) error // nil until its description is in
}

// local takes a candidate of this side.
func (t *trickle) local(c transfer.Candidate) {
	t.facts.local(c.Candidate, c.End)
	t.ours = append(t.ours, c)
	if t.told {
		t.letOut()
	}
}

// letOut signals this side's candidates: the description has been signaled.
func (t *trickle) letOut() {
	t.told = true
	for _, c := range t.ours {
		switch {
		case c.End:
			t.tell(signal.Signal{Kind: "end"})
		case len(c.Candidate) <= signal.MaxCandidate:
			t.tell(signal.Signal{Kind: "candidate", Candidate: c.Candidate, Mid: c.Mid, MLine: int(c.Line)})
		}
	}
	t.ours = nil
}

// remote takes a candidate of the other side. What is too many is dropped.
func (t *trickle) remote(m *signal.Signal) {
	if t.heard++; t.heard <= maxCandidates+1 {
		t.theirs = append(t.theirs, *m)
		if t.add != nil {
			t.catchUp()
		}
	}
}

// described hands the other side's candidates over from now on. A candidate that the link does not take is one path fewer.
func (t *trickle) described(add func(transfer.Candidate) error) {
	t.add = add
	t.catchUp()
}

func (t *trickle) catchUp() {
	for _, m := range t.theirs {
		t.facts.remote = t.facts.remote || bytes.Contains([]byte(m.Candidate), []byte(" typ srflx"))
		_ = t.add(transfer.Candidate{Candidate: m.Candidate, Mid: m.Mid, Line: uint16(m.MLine), End: m.Kind == "end"})
	}
	t.theirs = nil
}

// stop takes nothing any more.
func (t *trickle) stop() { t.add = func(transfer.Candidate) error { return nil } }
