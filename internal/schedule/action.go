package schedule

// Reason says why bytes did not come from a viewer: the closed set of spec/schedule.md.
type Reason string

// The reasons.
const (
	NoCert          Reason = "no-cert"
	NoHolder        Reason = "no-holder"
	UDPBlocked      Reason = "udp-blocked"
	SymmetricNAT    Reason = "symmetric-nat"
	LNADenied       Reason = "lna-denied"
	InsecureContext Reason = "insecure-context"
	ByPolicy        Reason = "policy"
	Budget          Reason = "budget"
	NeedsToken      Reason = "needs-token"
	Urgent          Reason = "urgent"
	ControlGroup    Reason = "control-group"
)

// Reasons lists the closed set.
var Reasons = []Reason{
	NoCert, NoHolder, UDPBlocked, SymmetricNAT, LNADenied, InsecureContext, ByPolicy, Budget, NeedsToken, Urgent, ControlGroup,
}

// ActionType is what to do.
type ActionType string

// The types of actions.
const (
	DoCertificate ActionType = "certificate"
	DoRequest     ActionType = "request"
	DoCancel      ActionType = "cancel"
	DoPromote     ActionType = "promote"
	DoOrigin      ActionType = "origin"
	DoStopOrigin  ActionType = "stop-origin"
	DoFail        ActionType = "fail"
	DoWake        ActionType = "wake"
)

// Why a request is made or canceled; for DoOrigin the Why of an action is a Reason.
const (
	WhyNear       = "near"
	WhyRace       = "race"
	WhyBackground = "background"
	WhyStalled    = "stalled"
	WhyLate       = "late" // another source is quicker; no fault of the peer
)

// Action is one thing to do. Fields that its type does not have are zero.
type Action struct {
	Type    ActionType `json:"type"`
	Segment string     `json:"segment"`
	Piece   int        `json:"piece"`
	Peer    string     `json:"peer"`
	Lane    Lane       `json:"lane"`
	Why     string     `json:"reason"`
	AtUs    int64      `json:"at_us"` // of DoWake: the earliest time at which a wait ends
}

// plan is what a decision has come to so far.
type plan struct{ actions []Action }

func (p *plan) act(a Action) { p.actions = append(p.actions, a) }

// origin starts the origin, if it is idle.
func (p *plan) origin(s *Segment, why Reason) {
	if s.Origin == OriginIdle {
		p.act(Action{Type: DoOrigin, Segment: s.ID, Why: string(why)})
	}
}
