package certificate

import (
	"crypto/sha256"
	"fmt"

	"github.com/leeway-video/leeway/internal/segment"
)

// maxShort is the size of the longest short certificate, in bytes.
const maxShort = headSize + 1 + maxSite + 2 + segment.MaxName + 1 + maxValidator + digestSize + signatureSize

// Short is a packager's certificate without its digests, as a list has it. It fails for one of a seed, whose signature
// cannot be verified without them.
func (c *Certificate) Short() ([]byte, error) {
	if c.Alg != Packager || c.raw == nil {
		return nil, fmt.Errorf("certificate of %q has alg %d: only a parsed certificate with alg %d has a short form", c.Name, c.Alg, Packager)
	}
	if c.isShort() {
		return c.raw, nil
	}
	head := c.raw[len(magic) : len(c.raw)-signatureSize-digestSize*len(c.Digests)]
	b := make([]byte, 0, len(magicShort)+len(head)+digestSize+signatureSize)
	b = append(append(append(b, magicShort...), head...), c.root[:]...)
	return append(b, c.raw[len(c.raw)-signatureSize:]...), nil
}

// isShort says whether the certificate has no digests. It can be verified, and completed.
func (c *Certificate) isShort() bool { return len(c.Digests) == 0 }

// ParseShort reads a short certificate and checks its form, as Parse does.
func ParseShort(b []byte) (*Certificate, error) {
	c, root, err := parse(b, magicShort, maxShort)
	if err != nil {
		return nil, err
	}
	c.root = [32]byte(root)
	return c, nil
}

// Complete is the certificate that a short one stands for, given the digests of a segment of length bytes. It fails if the
// packager signed another length or other digests: the bytes contradict the certificate.
func (c *Certificate) Complete(length int64, digests [][32]byte) (*Certificate, error) {
	if !c.isShort() || length != c.Length || rootOf(digests) != c.root {
		return nil, fmt.Errorf("%d bytes with %d pieces are not what was signed for %q", length, len(digests), c.Name)
	}
	cut := len(c.raw) - digestSize - signatureSize
	b := make([]byte, 0, cut+digestSize*len(digests)+signatureSize)
	b = append(append(b, magic...), c.raw[len(magicShort):cut]...)
	for i := range digests {
		b = append(b, digests[i][:]...)
	}
	full := *c
	full.Digests, full.raw = digests, append(b, c.raw[len(c.raw)-signatureSize:]...)
	return &full, nil
}

// rootOf is SHA-256 of the digests, one after the other.
func rootOf(digests [][32]byte) [32]byte {
	h := sha256.New()
	for i := range digests {
		h.Write(digests[i][:])
	}
	return [32]byte(h.Sum(nil))
}
