// Package armwire is the protocol between a load controller and its arms (spec/arm-protocol.md): JSON messages over a WebSocket, with
// the commands and events of Jattack (Amirante et al.) and extensions of ours. Decoders check everything that the other side says, and
// their errors are typed.
package armwire

import (
	"encoding/json"
	"fmt"
)

// Version is of the extensions; an arm names it when it registers.
const Version = 1

// Subprotocol is the WebSocket's.
const Subprotocol = "jattack-protocol"

// Limits of a message.
const (
	MaxMessage  = 1 << 20   // bytes of a message
	MaxSDP      = 128 << 10 // bytes of a session description
	MaxName     = 64        // bytes of an ID, a transaction or a name
	MaxText     = 1024      // bytes of any other text
	MaxChannels = 8         // data channels of a session
	MinChunk    = 32        // bytes of a chunk: its header and some
	MaxChunk    = 16 << 10  // bytes of a chunk
	MaxRate     = 100e6     // bit/s of a source, for each session
)

// Kind names a message: its member "jattack".
type Kind string

// Commands of the paper. Register is the arm's; the others are the controller's.
const (
	Register          Kind = "register"
	AddMediaSource    Kind = "add-media-source"
	RemoveMediaSource Kind = "remove-media-source"
	CreateSession     Kind = "create-session"
	DestroySession    Kind = "destroy-session"
	GenerateOffer     Kind = "generate-offer"
	GenerateAnswer    Kind = "generate-answer"
	HandleOffer       Kind = "handle-offer"
	HandleAnswer      Kind = "handle-answer"
	Hangup            Kind = "hangup" // also an event
	GetState          Kind = "get-state"
)

// Replies.
const (
	Success Kind = "success"
	Failure Kind = "error"
)

// Events of the paper. Trickle is a command too, which is an extension: the candidates of the peer.
const (
	SourceDone   Kind = "source-done"
	Trickle      Kind = "trickle"
	ICEState     Kind = "ice-state"
	SelectedPair Kind = "selected-pair"
	WebRTCUp     Kind = "webrtcup"
	Media        Kind = "media"
	Recording    Kind = "recording"
	Destroyed    Kind = "destroyed"
)

// Statistics is an event of ours: what an arm counts, and what it costs.
const Statistics Kind = "statistics"

var commands = map[Kind]bool{
	Register: true, AddMediaSource: true, RemoveMediaSource: true, CreateSession: true, DestroySession: true, GenerateOffer: true,
	GenerateAnswer: true, HandleOffer: true, HandleAnswer: true, Hangup: true, GetState: true, Trickle: true,
}

var events = map[Kind]bool{
	SourceDone: true, Trickle: true, ICEState: true, SelectedPair: true, WebRTCUp: true, Media: true, Recording: true, Hangup: true,
	Destroyed: true, Statistics: true,
}

// Code says what is wrong; a closed set.
type Code string

// The codes.
const (
	BadMessage     Code = "bad-message"     // no JSON object, too large, or a member of the envelope is missing or malformed
	UnknownCommand Code = "unknown-command" // no such command or event
	BadField       Code = "bad-field"       // a member of the body is unknown, of the wrong type or out of bounds
	UnknownSession Code = "unknown-session"
	UnknownSource  Code = "unknown-source"
	Exists         Code = "exists"      // the ID is in use
	WrongState     Code = "wrong-state" // the command does not fit what the session has done so far
	Limit          Code = "limit"       // a bound of the arm
	BadSDP         Code = "bad-sdp"     // of a description or candidate
	Unsupported    Code = "unsupported" // this arm, or the stack of the session, cannot do it
	PortInUse      Code = "port-in-use" // another session of the arm already uses this socket with that peer's address
	Failed         Code = "failed"      // of what lies below: sockets, files, the WebRTC stack
	Ending         Code = "ending"      // the arm ends
	Refused        Code = "refused"     // the controller does not take this arm
)

// Error is what a decoder and an arm answer with.
type Error struct {
	Code   Code   `json:"code"`
	Field  string `json:"field,omitempty"` // of the body, where one is to blame
	Reason string `json:"reason"`
}

// Error implements error.
func (e *Error) Error() string {
	if e.Field != "" {
		return fmt.Sprintf("arm protocol: %s: %s: %s", e.Code, e.Field, e.Reason)
	}
	return fmt.Sprintf("arm protocol: %s: %s", e.Code, e.Reason)
}

// Fail makes an error without a field.
func Fail(code Code, format string, a ...any) *Error {
	return &Error{Code: code, Reason: clip(fmt.Sprintf(format, a...))}
}

func badField(field, format string, a ...any) *Error {
	return &Error{Code: BadField, Field: field, Reason: clip(fmt.Sprintf(format, a...))}
}

func clip(s string) string {
	if len(s) > MaxText {
		s = s[:MaxText]
	}
	return s
}

// Message is the envelope of everything that is said.
type Message struct {
	Kind        Kind            `json:"jattack"`
	Transaction string          `json:"transaction,omitempty"` // of commands and replies; events have none
	ID          string          `json:"id,omitempty"`          // of the session
	Body        json.RawMessage `json:"body,omitempty"`
}

// IsCommand says whether it is to be answered.
func (m *Message) IsCommand() bool { return m.Transaction != "" && commands[m.Kind] }

// IsReply says whether it answers a command.
func (m *Message) IsReply() bool { return m.Kind == Success || m.Kind == Failure }

// IsEvent says whether it is told unasked.
func (m *Message) IsEvent() bool { return m.Transaction == "" }

// Encode writes a message with a body, which may be nil.
func Encode(kind Kind, transaction, id string, body any) ([]byte, error) {
	m := Message{Kind: kind, Transaction: transaction, ID: id}
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("arm protocol: encode %s: %w", kind, err)
		}
		m.Body = b
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("arm protocol: encode %s: %w", kind, err)
	}
	if len(b) > MaxMessage {
		return nil, Fail(BadMessage, "%d bytes; at most %d", len(b), MaxMessage)
	}
	return b, nil
}
