package peer

import (
	"errors"
	"fmt"
)

// Reason says in which way a message is malformed: a closed set, the same in both languages (vectors/peer.json).
type Reason string

// The reasons.
const (
	ReasonEmpty   Reason = "empty"   // no type byte
	ReasonShort   Reason = "short"   // ends before its layout does
	ReasonLong    Reason = "long"    // bytes after its layout, or more than a message may have
	ReasonChannel Reason = "channel" // a known type on a channel that does not carry it
	ReasonCount   Reason = "count"   // a list of zero entries, or of more than 255
	ReasonLimit   Reason = "limit"   // a field out of its limits
	ReasonPadding Reason = "padding" // bits set behind the end of a bitmap
)

// MalformedError says that a message ends its link (`protocol-error`).
type MalformedError struct {
	Type   Type // 0 for an empty message
	Reason Reason
}

func (e *MalformedError) Error() string {
	return fmt.Sprintf("peer message 0x%02x is malformed: %s", byte(e.Type), e.Reason)
}

// UnknownTypeError says that a message is to be skipped and counted.
type UnknownTypeError struct{ Type Type }

func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("peer message type 0x%02x is unknown", byte(e.Type))
}

// ErrVersion is returned by Negotiate when two hellos share no version.
var ErrVersion = errors.New("peer hello: no common version")

// IsUnknown says whether err only means that the message should be skipped.
func IsUnknown(err error) bool {
	var u *UnknownTypeError
	return errors.As(err, &u)
}

func malformed(t Type, r Reason) error { return &MalformedError{Type: t, Reason: r} }
