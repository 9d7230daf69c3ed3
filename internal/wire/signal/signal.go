// Package signal is the codec of the native tracker protocol leeway.v1 (spec/tracker-protocol.md): JSON text messages
// between a viewer and a tracker, as typed Go values in both directions.
//
// Decode is strict about what it knows and blind to what it does not: a known field of the wrong type or out of its limits
// is an error, an unknown field is skipped, an unknown message type becomes [Unknown]. Names are compared exactly (the
// standard library would match "TYPE" to "type", browsers do not), null is no value of any field, and numbers are integers
// between 0 and 2^53−1 in any JSON spelling (10, 10.0 and 1e1 are the same to both languages). spec/vectors/signal.json
// holds this codec and the TypeScript one together.
package signal

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/leeway-video/leeway/internal/swarm"
)

// Limits of spec/tracker-protocol.md. Sizes of text are in bytes of UTF-8.
const (
	Version       = 1           // of the protocol
	Subprotocol   = "leeway.v1" // of the WebSocket
	MaxMessage    = 65536       // bytes of one message
	MaxType       = 32          // bytes of a type
	MaxRequestID  = 1<<31 - 1
	MaxInteger    = 1<<53 - 1 // of every number without a closer limit
	MinInterval   = 100       // ms, of updates and statistics
	MaxInterval   = 3_600_000 // ms
	MaxClient     = 64
	MaxSite       = 32
	MaxToken      = 8192 // twice what access takes, so that one that is too long is told so
	MaxTicket     = 512
	MaxTitle      = 512
	MaxManifest   = 1024
	MaxWant       = 32
	MaxOffers     = 2
	MaxSaid       = 4    // messages in an answer
	MaxSaidBytes  = 8192 // of each
	MaxWanted     = 2    // segments that an offer names
	MaxPeers      = 32   // in one introduction
	MaxStatPeers  = 64   // that one report speaks of
	MaxParameters = 8    // of queries, that one report speaks of
	maxParameter  = 64   // bytes of the name of one
	MaxSDP        = 16384
	MaxCandidate  = 512
	MaxMid        = 64
	MaxKeys       = 64
	MaxServers    = 16
	MaxURLs       = 8
	MaxRevoked    = 1024
	MaxPrefix     = 1024
	MaxText       = 512 // bytes of an error's message and of its hint
)

// Algorithms of verify keys (spec/certificate.md): what a key may sign.
const (
	AlgSeed     = 1
	AlgPackager = 2
)

// ID is 22 characters of base64url on the wire.
type ID = swarm.ID

var base64url = base64.RawURLEncoding.Strict()

// Bytes is binary data, base64url without padding on the wire.
type Bytes []byte

// MarshalText implements encoding.TextMarshaler.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(base64url.EncodeToString(b)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Bytes) UnmarshalText(t []byte) error {
	if bytes.ContainsAny(t, "\r\n") {
		return errors.New("line break inside base64url")
	}
	d, err := base64url.DecodeString(string(t))
	*b = d
	return err
}

// Message is one of the message structs of this package.
type Message interface{ Type() string }

// ErrTooLarge is of a message that would have more than MaxMessage bytes.
var ErrTooLarge = errors.New("too large")

// Encode writes a message. It does not check limits, except the total size: the caller built the message.
func Encode(m Message) ([]byte, error) { return Append(nil, m) }

// Append is Encode behind what is in b already.
func Append(b []byte, m Message) ([]byte, error) {
	before := len(b)
	b, ok := appendMessage(b, m)
	if !ok {
		var err error
		if b, err = appendReflected(b, m); err != nil {
			return nil, err
		}
	}
	if n := len(b) - before; n > MaxMessage {
		return nil, fmt.Errorf("signal: encode %s: %d bytes; a message has at most %d: %w", m.Type(), n, MaxMessage, ErrTooLarge)
	}
	return b, nil
}

// appendReflected writes what is not sent often.
func appendReflected(b []byte, m Message) ([]byte, error) {
	if u, ok := m.(*Unknown); ok {
		return nil, fmt.Errorf("signal: encode: type %q is unknown to this codec", u.Name)
	}
	body, err := json.Marshal(withLists(m))
	if err != nil {
		return nil, fmt.Errorf("signal: encode %s: %w", m.Type(), err)
	}
	b = append(append(append(b, `{"type":"`...), m.Type()...), '"')
	if len(body) > 2 {
		b = append(b, ',')
	}
	return append(b, body[1:]...), nil
}

// withLists gives required lists that are nil the form [], since null is no value of any field.
func withLists(m Message) Message {
	switch m := m.(type) {
	case *Welcome:
		c := *m
		c.ICEServers, c.VerifyKeys, c.Revocations = orEmpty(c.ICEServers), orEmpty(c.VerifyKeys), orEmpty(c.Revocations)
		return &c
	case *Introduce:
		return &Introduce{Swarm: m.Swarm, Peers: orEmpty(m.Peers)}
	case *Keys:
		return &Keys{VerifyKeys: orEmpty(m.VerifyKeys)}
	case *SetServers:
		return &SetServers{ICEServers: orEmpty(m.ICEServers), Expire: m.Expire}
	case *Revoke:
		return &Revoke{Revocations: orEmpty(m.Revocations)}
	}
	return m
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// MalformedError says why a message was refused. Its text is safe to send back: it quotes nothing of the message.
type MalformedError struct {
	Request int    // the id of the refused request, 0 if it had none that could be read
	Field   string // path of the field, such as "offers[1].sdp"; empty for the message as a whole
	Problem string // one phrase
}

// Error implements error.
func (e *MalformedError) Error() string {
	if e.Field == "" {
		return "message " + e.Problem
	}
	return "field " + e.Field + " " + e.Problem
}
