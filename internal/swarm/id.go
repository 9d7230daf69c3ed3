package swarm

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
)

// ID names a session (and so a peer), a tracker, a swarm or a link: 128 bit, 22 characters of base64url as text.
type ID [16]byte

var base64url = base64.RawURLEncoding.Strict()

// ParseID reads what String wrote.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 22 {
		return id, fmt.Errorf("id of %d characters; it has 22 of base64url", len(s))
	}
	if n, err := base64url.Decode(id[:], []byte(s)); err != nil || n != len(id) {
		return ID{}, errors.New("id is not 128 bit of base64url without padding")
	}
	return id, nil
}

// String is the ID in base64url.
func (id ID) String() string { return base64url.EncodeToString(id[:]) }

// Hex is the ID in lower-case hexadecimal, as subjects of the bus have it.
func (id ID) Hex() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether the ID was never set; such an ID is never drawn.
func (id ID) IsZero() bool { return id == ID{} }

// MarshalText implements encoding.TextMarshaler.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *ID) UnmarshalText(b []byte) (err error) {
	*id, err = ParseID(string(b))
	return err
}
