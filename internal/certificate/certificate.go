// Package certificate binds the name of a segment to the digests of its pieces: issuing, parsing, verifying, revoking
// (spec/certificate.md). Pure: the twin of web/packages/core/src/certificate, held to it by spec/vectors/certificate.json.
//
// Layout of version 1, big-endian, without padding (a short certificate has the magic "LWS1" and one digest of the digests):
//
//	magic "LWC1" · alg 1 · key ID 8 · issued at 8 · not after 8 · object length 8 · length 4 ·
//	site 1+n · name 2+n · validator 1+n · digests 32 × ceil(length / 16384) · signature 64
package certificate

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
)

// Limits of the layout, in bytes.
const (
	MaxSize      = headSize + 1 + maxSite + 2 + segment.MaxName + 1 + maxValidator + digestSize*segment.MaxPieces + signatureSize
	maxSite      = 32
	maxValidator = 255
	headSize     = 41 // magic to length
	digestSize   = 32
	// signatureSize is r ‖ s, as WebCrypto has it.
	signatureSize = 64
	minSize       = headSize + 1 + 1 + 2 + 1 + 1 + digestSize + signatureSize
	maxInteger    = 1<<53 - 1 // what a JavaScript number holds exactly
)

const (
	magic      = "LWC1"
	magicShort = "LWS1"
	signedTag  = "leeway certificate v1\x00"
)

// Alg says how a certificate is signed: ECDSA P-256 with SHA-256 in both cases.
type Alg uint8

// The algorithms.
const (
	Seed     Alg = 1 // over all digests; also what the zero value stands for
	Packager Alg = 2 // over the digest of the digests, so that a short certificate can be verified
)

// MaxLife is the longest that a seed lets a certificate live.
const MaxLife = 6 * time.Hour

// MaxPackaged is the longest that a packager's certificate lives; PartLife is how long that of a part does.
const (
	MaxPackaged = 31 * 24 * time.Hour
	PartLife    = 10 * time.Minute
)

// KeyID is the first 8 bytes of SHA-256 of a public key's uncompressed point.
type KeyID [8]byte

// String is the key ID in lower-case hexadecimal, 16 characters.
func (k KeyID) String() string { return hex.EncodeToString(k[:]) }

// IsZero says whether the key ID names no key.
func (k KeyID) IsZero() bool { return k == KeyID{} }

// KeyIDOf is the key ID of a P-256 public key; of any other key it is zero.
func KeyIDOf(pub *ecdsa.PublicKey) KeyID {
	point, err := pub.Bytes()
	if err != nil {
		return KeyID{}
	}
	return keyIDOfPoint(point)
}

func keyIDOfPoint(point []byte) KeyID {
	sum := sha256.Sum256(point)
	return KeyID(sum[:8])
}

// Certificate says what the pieces of one segment are. Times have the precision of a millisecond.
type Certificate struct {
	KeyID        KeyID // of the key that signed; Issue fills it in
	IssuedAt     time.Time
	NotAfter     time.Time
	ObjectLength int64 // bytes of the whole object; equals Length unless Name has a range
	Length       int64 // bytes of this segment, 1 … segment.MaxLength
	Site         string
	Name         segment.Name
	Validator    string     // the origin's ETag, else its Last-Modified, else empty: opaque bytes
	Digests      [][32]byte // none in a short certificate
	Alg          Alg

	root [32]byte // SHA-256 of the digests; of a packager's certificate only
	raw  []byte   // what was parsed, signature included
}

// Bytes is the certificate as it was parsed, to pass on to peers. It must not be changed.
func (c *Certificate) Bytes() []byte { return c.raw }

// Root is the SHA-256 of the digests that a packager signed; of a seed's certificate it is zero.
func (c *Certificate) Root() [32]byte { return c.root }

// CheckPiece says whether data is piece i of the segment: of its length and with its digest.
func (c *Certificate) CheckPiece(i int, data []byte) bool {
	return i >= 0 && i < len(c.Digests) && len(data) == segment.PieceLen(c.Length, i) && sha256.Sum256(data) == c.Digests[i]
}

// SameContent says whether two certificates are for the same bytes. Two valid ones for one name that do not
// contradict each other (spec/certificate.md, "Contradictions"). Each may be short.
func (c *Certificate) SameContent(other *Certificate) bool {
	switch {
	case c.Length != other.Length || c.ObjectLength != other.ObjectLength:
		return false
	case c.isShort() || other.isShort():
		return c.digest() == other.digest()
	}
	return slices.Equal(c.Digests, other.Digests)
}

// digest is the SHA-256 of the digests.
func (c *Certificate) digest() [32]byte {
	if c.isShort() {
		return c.root
	}
	return rootOf(c.Digests)
}

// DigestPieces cuts data into pieces and digests each.
func DigestPieces(data []byte) [][32]byte {
	digests := make([][32]byte, 0, segment.Pieces(int64(len(data))))
	for len(data) > 0 {
		n := min(len(data), segment.PieceSize)
		digests = append(digests, sha256.Sum256(data[:n]))
		data = data[n:]
	}
	return digests
}

// check says what keeps a certificate from being well-formed; the same rules hold for issuing and for parsing.
func (c *Certificate) check() error {
	key, first, last, ranged := c.Name.Range()
	switch {
	case c.Length < 1 || c.Length > segment.MaxLength:
		return fmt.Errorf("length is %d; segments have 1 to %d bytes", c.Length, segment.MaxLength)
	case len(c.Site) < 1 || len(c.Site) > maxSite:
		return fmt.Errorf("site has %d bytes; 1 to %d", len(c.Site), maxSite)
	case len(c.Name) < 1 || len(c.Name) > segment.MaxName:
		return fmt.Errorf("name has %d bytes; 1 to %d", len(c.Name), segment.MaxName)
	case len(c.Validator) > maxValidator:
		return fmt.Errorf("validator has %d bytes; at most %d (leave it out)", len(c.Validator), maxValidator)
	case !printable(c.Site) || !printable(string(c.Name)):
		return fmt.Errorf("site or name has bytes other than printable ASCII")
	case !inRange(c.IssuedAt) || !inRange(c.NotAfter) || c.ObjectLength < 1 || c.ObjectLength > maxInteger:
		return fmt.Errorf("a time or the object length is negative or above 2^53-1")
	case c.Alg == Packager && c.NotAfter.Sub(c.IssuedAt) > MaxPackaged:
		return fmt.Errorf("it lives %v; a packager's certificate lives at most %v", c.NotAfter.Sub(c.IssuedAt), MaxPackaged)
	case !ranged && strings.Contains(key, "#"):
		return fmt.Errorf("the byte range in the name is not first-last")
	case !ranged && c.ObjectLength != c.Length:
		return fmt.Errorf("object length %d is not the length %d of a whole object", c.ObjectLength, c.Length)
	case ranged && (last-first+1 != c.Length || last >= c.ObjectLength):
		return fmt.Errorf("length %d and object length %d do not fit the range %d-%d in the name", c.Length, c.ObjectLength, first, last)
	}
	return nil
}

// checkDigests says whether there is a digest for each piece. Of what is parsed, the size has said so.
func (c *Certificate) checkDigests() error {
	if len(c.Digests) != segment.Pieces(c.Length) {
		return fmt.Errorf("%d digests for %d pieces", len(c.Digests), segment.Pieces(c.Length))
	}
	return nil
}

func inRange(t time.Time) bool { ms := t.UnixMilli(); return ms >= 0 && ms <= maxInteger }

// printable is true of visible ASCII: sites and names are made of nothing else (spec/site.md), so no two languages can
// read one byte string as two texts.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
