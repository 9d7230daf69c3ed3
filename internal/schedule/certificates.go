package schedule

import (
	"cmp"
	"slices"
)

// certificates asks peers for the certificates of segments.
type certificates struct {
	plan   *plan
	timer  *timer
	peers  *peers
	policy *Policy
}

// ask asks the next peer for the certificate: holders first, then on-demand peers, the lowest round trip first; holders alone where
// a list has it. It says whether there was one left to ask.
func (c *certificates) ask(s *Segment) bool {
	var next *peer
	for _, holds := range []bool{true, false} {
		for _, p := range c.peers.all {
			_, holder := p.Holds[s.ID]
			if p.stalled || slices.Contains(s.CertPeers, p.ID) || holds && !holder || !holds && (!p.OnDemand || s.listed()) {
				continue
			}
			if next == nil || cmp.Or(cmp.Compare(p.RTTUs, next.RTTUs), cmp.Compare(p.ID, next.ID)) < 0 {
				next = p
			}
		}
		if next != nil {
			c.plan.act(Action{Type: DoCertificate, Segment: s.ID, Peer: next.ID})
			return true
		}
	}
	return false
}

// asked says whether a peer that was asked may still answer.
func (c *certificates) asked(s *Segment) bool {
	return s.Certificate == CertAsked &&
		slices.ContainsFunc(c.peers.all, func(p *peer) bool { return slices.Contains(s.CertPeers, p.ID) && p.offers(s) })
}

// await asks a further peer from time to time while the first ones may answer, and the origin for the segment after that (rule 4).
func (c *certificates) await(s *Segment) {
	if !c.timer.waits(max(s.CertAskedUs, s.AskedUs) + c.policy.CertPatienceUs) {
		c.plan.origin(s, NoCert)
	} else if !c.timer.waits(s.CertAskedUs + int64(len(s.CertPeers))*(c.policy.CertPatienceUs/4)) {
		c.ask(s)
	}
}
