package swarm

import "time"

const (
	// ClaimTerm is how long a claim waits for the other side's at least; twice that at most. Reports come every ten seconds.
	ClaimTerm = 30 * time.Second
	// maxFlows bounds what is remembered of a swarm, maxBegun what one member brings in in a term: it has two ways to a peer, and two paths.
	maxFlows = 1 << 17
	maxBegun = 128
)

// Bytes are an amount, by the path that they took.
type Bytes struct{ Direct, Relay int64 }

// flowKey names what goes from one member to another by one path.
type flowKey struct {
	from, to ID
	relay    bool
}

// flow is what only one side has claimed so far: in this term, and in the one before.
type flow struct{ sent, received [2]int64 }

// claims are what members say that they sent to each other and received from each other (spec/tracker-protocol.md,
// "Statistics"). What both say is credited; what one alone says is forgotten after a while.
type claims struct {
	flows    map[flowKey]*flow
	begun    map[ID]int // flows that each member was the first to claim, in this term
	term     time.Time  // when this one began
	credited int64      // in all, without a relay
}

// Claim takes in what a member says that it received from another, and sent to it, and returns what the two now agree on
// that they did not before.
func (s *Swarm) Claim(claimant, other ID, in, out Bytes) (credited Bytes) {
	_, left := s.blamed.gone[other]
	if s.members[claimant] == nil || s.members[other] == nil && !left || claimant == other {
		return Bytes{}
	}
	c := &s.claims
	credited = Bytes{
		Direct: c.match(claimant, flowKey{other, claimant, false}, in.Direct) + c.match(claimant, flowKey{claimant, other, false}, out.Direct),
		Relay:  c.match(claimant, flowKey{other, claimant, true}, in.Relay) + c.match(claimant, flowKey{claimant, other, true}, out.Relay),
	}
	c.credited += credited.Direct
	return credited
}

// Credited are the bytes without a relay that members had from each other by the word of both, since the swarm was made.
func (s *Swarm) Credited() int64 { return s.claims.credited }

// match holds one side's claim against what the other has claimed, the oldest first.
func (c *claims) match(claimant ID, k flowKey, n int64) (credited int64) {
	if n <= 0 {
		return 0
	}
	f := c.flows[k]
	if f == nil {
		if len(c.flows) >= maxFlows || c.begun[claimant] >= maxBegun {
			return 0
		}
		c.begun[claimant]++
		f = &flow{}
		c.flows[k] = f
	}
	mine, theirs := &f.received, &f.sent
	if claimant == k.from {
		mine, theirs = theirs, mine
	}
	for _, term := range [...]int{1, 0} {
		both := min(n, theirs[term])
		theirs[term] -= both
		n -= both
		credited += both
	}
	mine[0] += n
	return credited
}

// expire begins another term when the last is over: what was claimed before the last is forgotten.
func (c *claims) expire(now time.Time) {
	if now.Sub(c.term) < ClaimTerm {
		return
	}
	c.term = now
	clear(c.begun)
	for k, f := range c.flows {
		f.sent, f.received = [2]int64{0, f.sent[0]}, [2]int64{0, f.received[0]}
		if *f == (flow{}) {
			delete(c.flows, k)
		}
	}
}
