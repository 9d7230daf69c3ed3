package pairing

import (
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Body is a signal in the words of the library (SignalBody in web/packages/core/src/session/messages.ts).
type Body struct {
	Kind      string     `json:"kind"` // offer, answer, candidate, end, fail
	SDP       string     `json:"sdp,omitempty"`
	Plan      *peer.Plan `json:"plan,omitempty"`
	Candidate string     `json:"candidate,omitempty"`
	Mid       string     `json:"sdp_mid,omitempty"`
	Line      uint16     `json:"sdp_m_line_index,omitempty"`
	Reason    string     `json:"reason,omitempty"`
}

// Signal is the body for the other end, if it is for that.
func (b Body) Signal() (s Signal, ok bool) {
	switch {
	case (b.Kind == "offer" || b.Kind == "answer") && b.Plan != nil:
		return Signal{Description: &transfer.Description{SDP: b.SDP, Plan: *b.Plan}}, true
	case b.Kind == "candidate":
		return Signal{Candidate: &transfer.Candidate{Candidate: b.Candidate, Mid: b.Mid, Line: b.Line}}, true
	case b.Kind == "end":
		return Signal{Candidate: &transfer.Candidate{End: true}}, true
	}
	return Signal{}, false
}

// Body is the signal for a page; a description is the answer to what the page offered, or an offer.
func (s Signal) Body(offered bool) Body {
	switch {
	case s.Description != nil && offered:
		return Body{Kind: "answer", SDP: s.Description.SDP, Plan: &s.Description.Plan}
	case s.Description != nil:
		return Body{Kind: "offer", SDP: s.Description.SDP, Plan: &s.Description.Plan}
	case s.Candidate != nil && !s.Candidate.End:
		return Body{Kind: "candidate", Candidate: s.Candidate.Candidate, Mid: s.Candidate.Mid, Line: s.Candidate.Line}
	}
	return Body{Kind: "end"}
}
