package peer

import "fmt"

// Labels of the data channels of a link; the data channels are DataLabel + index.
const (
	ControlLabel = "lw.control"
	AckLabel     = "lw.ack"
	DataLabel    = "lw.data."
)

// Plan is the channel plan that travels beside an offer and its answer.
type Plan struct {
	V       int `json:"v"`
	Data    int `json:"data"`    // number of data channels, 1–8
	Message int `json:"message"` // largest message that its sender accepts on a data channel, bytes
}

// MaxDataChannels is the most that a plan may have.
const MaxDataChannels = 8

// MaxStrayChannels is how many channels outside the plan a link survives; each is closed at once.
const MaxStrayChannels = 8

// DefaultPlan is what seeds and viewers propose.
var DefaultPlan = Plan{V: 1, Data: 2, Message: 16384}

// Check says whether the plan is within the protocol's limits.
func (p Plan) Check() error {
	if p.V != 1 || p.Data < 1 || p.Data > MaxDataChannels || p.Message < MinMessage || p.Message > MaxMessage {
		return fmt.Errorf("channel plan {v %d, data %d, message %d} is out of limits (v 1, data 1–%d, message %d–%d)",
			p.V, p.Data, p.Message, MaxDataChannels, MinMessage, MaxMessage)
	}
	return nil
}

// Agree returns the plan that holds between two sides.
func (p Plan) Agree(q Plan) Plan {
	return Plan{V: 1, Data: min(p.Data, q.Data), Message: min(p.Message, q.Message)}
}

// CloseReason says why a link ended, as the side that counts it sees it: a closed set, the label `reason` of the
// link metrics.
type CloseReason string

// The reasons.
const (
	CloseClosed   CloseReason = "closed"
	CloseFailed   CloseReason = "failed"
	CloseTimeout  CloseReason = "timeout"
	CloseVersion  CloseReason = "version"
	CloseProtocol CloseReason = "protocol-error"
	CloseBadPiece CloseReason = "bad-piece"
	CloseFalse    CloseReason = "false-have"
	CloseStalled  CloseReason = "stalled"
	CloseLimit    CloseReason = "over-limit"
	ClosePolicy   CloseReason = "policy"
	CloseIdle     CloseReason = "idle"
	CloseShutdown CloseReason = "shutdown"
)

// CloseReasons lists the closed set, for metrics.
var CloseReasons = []CloseReason{
	CloseClosed, CloseFailed, CloseTimeout, CloseVersion, CloseProtocol, CloseBadPiece,
	CloseFalse, CloseStalled, CloseLimit, ClosePolicy, CloseIdle, CloseShutdown,
}
