// Package segment names media segments, derives their IDs and cuts them into pieces, as spec/site.md says
// ("Segment names and IDs"). Pure: the twin of web/packages/core/src/segment, held to it by spec/vectors/site.json.
package segment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Sizes, in bytes (spec/site.md).
const (
	PieceSize     = 16384     // unit of request, verification and blame; the last piece of a segment may be shorter
	MaxLength     = 8 << 20   // longest segment that is shared whole; also the longest that any certificate covers
	VirtualLength = 4 << 20   // length of the parts in which a longer object is shared
	MaxPieces     = 512       // pieces of a segment of MaxLength
	MaxObject     = 1 << 40   // longest object that is shared at all: a longer claim would make us list parts without end
	MaxName       = 1057      // bytes of a Name on the wire: the longest key and a range within MaxObject fit in
	maxOffset     = 1<<53 - 1 // the largest integer that a JavaScript number holds exactly
)

// idDomain separates the hash of segment IDs from every other use of SHA-256.
const idDomain = "leeway segment v1"

// ID is what peers exchange instead of a name: 16 bytes that only a party that knows site and name can derive.
type ID [16]byte

// String is the ID in lower-case hexadecimal, 32 characters.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID reads what String wrote.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 2*len(id) {
		return id, fmt.Errorf("segment ID %.40q: %d characters instead of %d", s, len(s), 2*len(id))
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return ID{}, fmt.Errorf("segment ID %q: %w", s, err)
	}
	return id, nil
}

// Name is a segment's name within its site: a key, or a key and a byte range.
type Name string

// WholeName names the whole object behind a key.
func WholeName(key string) Name { return Name(key) }

// RangeName names the bytes first to last, both inclusive, of the object behind a key. It is empty, which is the name of
// nothing, unless 0 ≤ first ≤ last < 2^53.
func RangeName(key string, first, last int64) Name {
	if first < 0 || first > last || last > maxOffset {
		return ""
	}
	return Name(key + "#" + strconv.FormatInt(first, 10) + "-" + strconv.FormatInt(last, 10))
}

// Range splits the name of a byte range. For any other name ok is false, key is the whole name and the offsets are 0.
func (n Name) Range() (key string, first, last int64, ok bool) {
	key, span, found := strings.Cut(string(n), "#")
	if !found {
		return string(n), 0, 0, false
	}
	from, to, found := strings.Cut(span, "-")
	first, okFirst := offset(from)
	last, okLast := offset(to)
	if key == "" || !found || !okFirst || !okLast || first > last {
		return string(n), 0, 0, false
	}
	return key, first, last, true
}

// Key is the key of the object that the segment is, or is a part of.
func (n Name) Key() string {
	key, _, _, _ := n.Range()
	return key
}

// offset reads a decimal below 2^53 in its one canonical form, so that a range has exactly one name.
func offset(s string) (int64, bool) {
	if s == "" || len(s) > 16 || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	var v int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		v = v*10 + int64(s[i]-'0')
	}
	return v, v <= maxOffset
}

// NewID derives the ID of a segment of a site.
func NewID(site string, n Name) ID {
	b := make([]byte, 0, len(idDomain)+len(site)+len(n)+2)
	b = append(b, idDomain...)
	b = append(b, 0)
	b = append(b, site...)
	b = append(b, 0)
	b = append(b, n...)
	sum := sha256.Sum256(b)
	return ID(sum[:16])
}

// Pieces is the number of pieces of a segment of length bytes; 0 when there are no bytes.
func Pieces(length int64) int {
	if length <= 0 {
		return 0
	}
	return int((length-1)/PieceSize + 1)
}

// PieceLen is the length in bytes of piece i of a segment of length bytes; 0 when there is no such piece.
func PieceLen(length int64, i int) int {
	if i < 0 || i >= Pieces(length) {
		return 0
	}
	return int(min(PieceSize, length-int64(i)*PieceSize))
}

// Span is a range of bytes, both ends inclusive.
type Span struct{ First, Last int64 }

// Len is the number of bytes in the span.
func (s Span) Len() int64 { return s.Last - s.First + 1 }

// Virtual lists the parts in which an object of length bytes is shared. It is nil when the object is shared whole
// (length ≤ MaxLength) and when it is too long to be shared at all (length > MaxObject).
func Virtual(length int64) []Span {
	if length <= MaxLength || length > MaxObject {
		return nil
	}
	spans := make([]Span, 0, (length-1)/VirtualLength+1)
	for first := int64(0); first < length; first += VirtualLength {
		spans = append(spans, Span{first, min(first+VirtualLength, length) - 1})
	}
	return spans
}
