package viewer

import (
	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/segment"
)

// partCertificates verifies the certificates of parts, and loads those of the packager (spec/packaging.md, "Parts"). The node says when.
type partCertificates struct {
	*shared
	site    string
	wanted  func() bool // a packager's key is known, and this viewer shares
	verify  func(*certificate.Certificate) error
	figures *ListFigures
}

// load loads the certificate of the part that the player of a stream waits for, or of a chunk that the origin has sent.
func (c *partCertificates) load(s *streams, a parts.Certificate) {
	f := s.of(a.Stream)
	if f == nil {
		return
	}
	ref, sent := a.Of.(Reference)
	if !sent {
		if f.load == nil || f.load.turn != a.Turn {
			return // the player waits for it no more; the node gives up a load that is not answered
		}
		ref = f.load.Reference
	}
	f.certifying = c.line.beside(certificate.PartURL(ref.URL, ref.Ranged, ref.First, ref.Last), certificate.MaxSize, func(data []byte, err error) {
		f.certifying = nil
		cert, content := c.take(ref, data, err), (*parts.Content)(nil)
		if cert != nil {
			says := c.content(cert)
			content = &says
		}
		s.with(func(n *parts.Node, now int64) { n.Loaded(now, a, content) })
		if cert != nil && sent && a.Turn%segmentTurns == parts.End {
			s.chunks.ended(cert)
		}
	})
}

// late gives up a load that takes too long.
func (c *partCertificates) late(f *followed) {
	if f != nil {
		f.giveUp()
	}
	c.figures.PartsMissed++
}

// giveUp gives up the load that runs, if one does.
func (f *followed) giveUp() {
	if f.certifying != nil {
		f.certifying()
		f.certifying = nil
	}
}

// take is what a certificate says that was loaded for a part; nil: it is none of a packager that verifies.
func (c *partCertificates) take(ref Reference, data []byte, err error) *certificate.Certificate {
	id, named := c.segments.id(ref)
	if err == nil && named {
		if cert := c.judged(data); cert != nil && cert.Alg == certificate.Packager && segment.NewID(c.site, cert.Name) == id {
			c.figures.Parts++
			c.figures.Bytes += int64(len(data))
			return cert
		}
	}
	c.figures.PartsMissed++
	return nil
}

// judged is a certificate that verifies; nil: it does not.
func (c *partCertificates) judged(raw []byte) *certificate.Certificate {
	cert, err := certificate.Parse(raw)
	if err != nil || c.verify(cert) != nil {
		return nil
	}
	return cert
}

// content is what a certificate says of a part.
func (c *partCertificates) content(cert *certificate.Certificate) parts.Content {
	return parts.Content{
		Segment: segment.NewID(c.site, cert.Name), Length: int(cert.Length), Digests: cert.Digests, Raw: cert.Bytes(), Name: cert.Name, Packaged: cert.Alg == certificate.Packager,
	}
}
