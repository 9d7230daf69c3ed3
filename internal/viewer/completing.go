package viewer

import "github.com/leeway-video/leeway/internal/certificate"

// counts says whether an entry of a list would verify if its signature is right.
func (v *verification) counts(c *certificate.Certificate) bool {
	return v.keys.Counts(c, v.site, v.now(), v.revoked)
}

// entry is the short certificate of a segment, verified; nil if no list has one. One that does not verify is dropped.
func (v *verification) entry(s *seg) *certificate.Certificate {
	for {
		short := v.lists.entry(s)
		if short == nil || v.verify(short, s) == nil {
			return short
		}
		v.lists.refuse(short)
	}
}

// complete makes the certificate of a segment of what the origin sent and of what a list has signed.
func (v *verification) complete(s *seg) {
	short := v.entry(s)
	if short == nil {
		v.lists.lacks(s)
		return
	}
	data := s.uncertified
	s.uncertified = nil
	full, err := short.Complete(int64(len(data)), certificate.DigestPieces(data))
	if err == nil {
		v.lists.figures.Completed++
		v.certify(s, full)
	}
	v.compared(s, data, err == nil)
}

// differs says whether a list has signed another content than a certificate.
func (v *verification) differs(s *seg, c *certificate.Certificate) bool {
	short := v.lists.entry(s)
	return short != nil && !short.SameContent(c) && v.entry(s) == short
}

// listed is called when a list has come: what waits for a certificate may have one now, and what has one may contradict it.
func (v *verification) listed() {
	for _, s := range v.segments.all() {
		switch {
		case s.disputed != nil:
		case s.cert == nil && s.uncertified != nil && v.sharing():
			if v.lists.entry(s) != nil {
				v.complete(s)
			}
		case s.cert != nil && v.differs(s, s.cert):
			v.dispute(s, s.cert, v.lists.entry(s))
		}
	}
	v.changed()
}
