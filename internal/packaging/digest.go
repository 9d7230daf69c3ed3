package packaging

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
)

// readSize is how many bytes of a file are read at a time, a multiple of a piece: more is not faster, and each worker has as much.
const readSize = 64 * segment.PieceSize

// errChanged is a file that was written to while it was read.
var errChanged = errors.New("the file changed while it was read (sign it when the packager has written it)")

// span is one segment to sign: bytes of a file, under a name.
type span struct {
	name   segment.Name
	file   string // below the folder
	first  int64
	length int64
	object int64 // bytes of the file; of one that grows, up to the end of the span
	grows  bool

	modified time.Time // the file, when the span was made
}

// whole says whether a file has the span, and was not written to while that was read. One that grows is written to all the time.
func (s *span) whole(before, after fs.FileInfo) bool {
	if s.grows {
		return before.Size() >= s.object
	}
	return before.Size() == s.object && after.Size() == s.object && after.ModTime().Equal(before.ModTime())
}

// sign reads a span and issues its short certificate. buffer has readSize bytes.
func (p *Packager) sign(ctx context.Context, s span, life time.Duration, buffer []byte) ([]byte, error) {
	c, err := p.issue(ctx, s, life, buffer)
	if err != nil {
		return nil, err
	}
	return c.Short()
}

// issue reads a span and issues its certificate. buffer is for some pieces.
func (p *Packager) issue(ctx context.Context, s span, life time.Duration, buffer []byte) (*certificate.Certificate, error) {
	issued := p.Now().Truncate(time.Millisecond)
	f, err := p.Root.Open(s.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !s.whole(before, before) {
		return nil, errChanged // since it was planned: reading it would be in vain
	}
	digests, err := p.digests(ctx, io.NewSectionReader(f, s.first, s.length), s.length, buffer)
	if err != nil {
		return nil, err
	}
	after, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !s.whole(before, after) {
		return nil, errChanged
	}
	raw, err := certificate.Issue(nil, p.Key, certificate.Certificate{
		Alg: certificate.Packager, IssuedAt: issued, NotAfter: issued.Add(life), ObjectLength: s.object, Length: s.length,
		Site: p.Site.Name(), Name: s.name, Digests: digests,
	})
	if err != nil {
		return nil, err
	}
	c, err := certificate.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("the certificate that was made cannot be read: %w", err)
	}
	return c, nil
}

// digests are those of the pieces of length bytes.
func (p *Packager) digests(ctx context.Context, r io.Reader, length int64, buffer []byte) ([][32]byte, error) {
	digests := make([][32]byte, 0, segment.Pieces(length))
	for left := length; left > 0; {
		part := buffer[:min(left, int64(len(buffer)))]
		if _, err := io.ReadFull(r, part); err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
				return nil, errChanged
			}
			return nil, err
		}
		left -= int64(len(part))
		p.read.Add(int64(len(part)))
		for len(part) > 0 {
			n := min(len(part), segment.PieceSize)
			digests = append(digests, sha256.Sum256(part[:n]))
			part = part[n:]
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return digests, nil
}
