package parts

import (
	"slices"

	"github.com/leeway-video/leeway/internal/mesh"
)

// Loads of the packager's certificates (spec/packaging.md, "Parts" and "Chunks"). Times are µs.
const (
	mostMisses = 4           // in a row; with the last of them a pause begins
	minPause   = 4_000_000   // doubled with each further one
	maxPause   = 600_000_000 // the longest
	none       = -1          // no turn
	mostTries  = 3           // for the certificate of a chunk
)

// packager is what is known of the packager's certificates of a stream's parts.
type packager struct {
	heard   int64 // when one came last that counts
	loading int64 // turn of the part whose certificate is being loaded, or none
	since   int64 // when that began
	misses  int   // in a row
	again   int64 // nothing is loaded before
}

// vouches says whether the node can be a source by the packager's word.
func vouches(s *Stream, now int64) bool {
	return now-s.signed.heard < silence*s.set.Part && now >= s.signed.again
}

// seeded says whether a linked seed sends certificates.
func seeded(s *Stream, now int64) bool {
	return now-s.heard < silence*s.set.Part && linked(s, func(l *link) bool { return l.seed })
}

func linked(s *Stream, what func(*link) bool) bool {
	for _, l := range s.node.links {
		if what(l) {
			return true
		}
	}
	return false
}

// missed notes that a load has brought nothing.
func (k *packager) missed(now int64) {
	k.loading = none
	if k.misses++; k.misses >= mostMisses {
		k.again = now + min(int64(minPause)<<min(k.misses-mostMisses, 10), maxPause)
	}
}

// isSource says whether the node is to be the source of one of the pieces of runs or, without runs, of a part.
func isSource(s *Stream, now int64, p *part, runs []Run) bool {
	return !seeded(s, now) && linked(s, func(l *link) bool { return !l.seed && l.following(s.id) }) && leads(s, now, p, runs)
}

// wantCertificate asks for the packager's certificate of a part, if this node is to be the source of one of the pieces that the origin is asked
// for: those of runs or, without runs, all. It is also called for a part of unknown length, which the origin is not asked for yet. A chunk is
// known when the origin has sent it.
func wantCertificate(s *Stream, now int64, p *part, runs []Run) {
	k, a, tries := &s.signed, s.player.asked, 1
	known := a != nil && a.Packaged
	if p.fits != nil {
		known, tries = p.beside != nil, mostTries
	}
	if !known || p.content != nil || p.sought == tries || !isSource(s, now, p, runs) {
		return
	}
	if late(s, now); k.loading != none || now < k.again {
		return
	}
	p.sought++
	k.loading, k.since = int64(p.turn), now
	s.node.do(Certificate{s.id, p.turn, p.beside})
}

// goOn asks for the certificate that comes next of chunks that the origin has sent: one load runs at a time.
func goOn(s *Stream, now int64) {
	var sent []*part
	for _, p := range s.shelf.parts {
		if p.beside != nil {
			sent = append(sent, p)
		}
	}
	slices.SortFunc(sent, func(p, q *part) int { return int(int32(p.turn - q.turn)) })
	for _, p := range sent {
		wantCertificate(s, now, p, nil)
	}
}

// late gives up a load that has taken as long as a part plays: the part is of no use to children by then.
func late(s *Stream, now int64) {
	if k := &s.signed; k.loading != none && now-k.since >= s.set.Part {
		k.missed(now)
		s.node.do(GiveUp{s.id})
	}
}

func leads(s *Stream, now int64, p *part, runs []Run) bool {
	for stripe := range stripes {
		asked := runs == nil || slices.ContainsFunc(runs, func(r Run) bool {
			for i := r.First; i <= r.Last; i++ {
				if p.stripe(i) == stripe {
					return true
				}
			}
			return false
		})
		if asked && mesh.Leads(s.mesh, now, stripe) {
			return true
		}
	}
	return false
}

// Loaded takes what came of a Certificate: what the packager's says, which is verified, or nil.
func (n *Node) Loaded(now int64, a Certificate, c *Content) {
	s := n.streams[a.Stream]
	if s == nil || s.signed.loading != int64(a.Turn) {
		return
	}
	if s.signed.loading = none; c != nil && s.certify(now, a.Turn, c) {
		s.signed.misses = 0
		goOn(s, now)
	} else if p := s.shelf.parts[a.Turn]; p == nil || p.beside == nil || p.sought == mostTries { // else it may not be there yet
		s.signed.missed(now)
	}
	s.flush(now)
}
