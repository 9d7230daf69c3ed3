package certificate

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"

	"github.com/leeway-video/leeway/internal/segment"
)

// Issue signs a certificate with a P-256 key and returns it as it goes over the wire; c.KeyID is taken from the key. With
// a nil source of randomness the signature is deterministic (RFC 6979), which is as safe.
func Issue(rand io.Reader, key *ecdsa.PrivateKey, c Certificate) ([]byte, error) {
	if key == nil || key.Curve != elliptic.P256() {
		return nil, errors.New("issue certificate: the key is not on P-256 (leeway makes one when signing keys are left out)")
	}
	if err := cmp.Or(c.check(), c.checkDigests()); err != nil {
		return nil, fmt.Errorf("issue certificate for %q: %w", c.Name, err)
	}
	c.KeyID = KeyIDOf(&key.PublicKey)
	b := c.body()
	head, digests := b[:len(b)-digestSize*len(c.Digests)], b[len(b)-digestSize*len(c.Digests):]
	if c.Alg == Packager {
		root := sha256.Sum256(digests)
		digests = root[:]
	}
	digest := signedDigest(head, digests)
	der, err := key.Sign(rand, digest[:], crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("issue certificate for %q: sign: %w", c.Name, err)
	}
	var sig struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &sig); err != nil {
		return nil, fmt.Errorf("issue certificate for %q: read signature: %w", c.Name, err)
	}
	var raw [signatureSize]byte
	sig.R.FillBytes(raw[:32])
	sig.S.FillBytes(raw[32:])
	return append(b, raw[:]...), nil
}

// body is everything before the signature.
func (c *Certificate) body() []byte {
	b := make([]byte, 0, headSize+4+len(c.Site)+len(c.Name)+len(c.Validator)+digestSize*len(c.Digests)+signatureSize)
	b = append(b, magic...)
	b = append(b, byte(max(c.Alg, Seed)))
	b = append(b, c.KeyID[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(c.IssuedAt.UnixMilli()))
	b = binary.BigEndian.AppendUint64(b, uint64(c.NotAfter.UnixMilli()))
	b = binary.BigEndian.AppendUint64(b, uint64(c.ObjectLength))
	b = binary.BigEndian.AppendUint32(b, uint32(c.Length))
	b = append(b, byte(len(c.Site)))
	b = append(b, c.Site...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(c.Name)))
	b = append(b, c.Name...)
	b = append(b, byte(len(c.Validator)))
	b = append(b, c.Validator...)
	for i := range c.Digests {
		b = append(b, c.Digests[i][:]...)
	}
	return b
}

// signedDigest is the hash of what is signed: of the head, a short certificate's too, and of the digests or, of a packager's, their
// SHA-256.
func signedDigest(head, digests []byte) [32]byte {
	h := sha256.New()
	io.WriteString(h, signedTag+magic)
	h.Write(head[len(magic):])
	h.Write(digests)
	return [32]byte(h.Sum(nil))
}

// Parse reads a certificate and checks its form, not its signature. It fails with an *Error whose Outcome is Malformed or
// UnknownAlg. Nothing is allocated before the length has been checked against the bytes that are there; b is copied.
func Parse(b []byte) (*Certificate, error) {
	c, digests, err := parse(b, magic, MaxSize)
	if err != nil {
		return nil, err
	}
	c.Digests = make([][32]byte, len(digests)/digestSize)
	for i := range c.Digests {
		c.Digests[i] = [32]byte(digests[i*digestSize:])
	}
	if c.Alg == Packager {
		c.root = sha256.Sum256(digests)
	}
	return c, nil
}

// parse reads a certificate of either form. What stands between the head and the signature is returned.
func parse(b []byte, magic string, most int) (*Certificate, []byte, error) {
	if len(b) < minSize || len(b) > most {
		return nil, nil, malformed("%d bytes; %d to %d are expected", len(b), minSize, most)
	}
	if string(b[:4]) != magic {
		return nil, nil, malformed("does not begin with %s", magic)
	}
	c := &Certificate{
		Alg: Alg(b[4]), KeyID: KeyID(b[5:13]),
		IssuedAt: millis(b[13:]), NotAfter: millis(b[21:]),
		ObjectLength: int64(min(binary.BigEndian.Uint64(b[29:]), maxInteger+1)),
		Length:       int64(binary.BigEndian.Uint32(b[37:])),
	}
	if c.Length < 1 || c.Length > segment.MaxLength {
		return nil, nil, malformed("length is %d", c.Length)
	}
	digests := 1
	if magic != magicShort {
		digests = segment.Pieces(c.Length)
	}
	rest := b[headSize:]
	site, rest, ok1 := prefixed(rest, 1)
	name, rest, ok2 := prefixed(rest, 2)
	validator, rest, ok3 := prefixed(rest, 1)
	if !ok1 || !ok2 || !ok3 || len(rest) != digests*digestSize+signatureSize {
		return nil, nil, malformed("%d bytes are not what its lengths add up to", len(b))
	}
	c.raw = append([]byte(nil), b...)
	c.Site, c.Name, c.Validator = string(site), segment.Name(name), string(validator)
	if err := c.check(); err != nil {
		return nil, nil, malformed("%w", err)
	}
	if c.Alg != Packager && (c.Alg != Seed || magic == magicShort) {
		return nil, nil, &Error{Outcome: UnknownAlg, Cause: fmt.Errorf("alg %d; known are %d and, of packagers, %d", b[4], Seed, Packager)}
	}
	return c, rest[:digests*digestSize], nil
}

func malformed(format string, args ...any) error {
	return &Error{Outcome: Malformed, Cause: fmt.Errorf(format, args...)}
}

// millis reads a time; what no time can be becomes one that check refuses.
func millis(b []byte) time.Time {
	return time.UnixMilli(int64(min(binary.BigEndian.Uint64(b), maxInteger+1)))
}

// prefixed splits off a field whose length stands before it in size (1 or 2) bytes.
func prefixed(b []byte, size int) (field, rest []byte, ok bool) {
	if len(b) < size {
		return nil, nil, false
	}
	n := int(b[0])
	if size == 2 {
		n = int(binary.BigEndian.Uint16(b))
	}
	if len(b)-size < n {
		return nil, nil, false
	}
	return b[size : size+n], b[size+n:], true
}
