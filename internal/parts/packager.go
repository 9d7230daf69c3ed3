package parts

import (
	"slices"

	"github.com/leeway-video/leeway/internal/mesh"
)

// Loads of the packager's certificates (spec/packaging.md, "Parts"). Times are µs.
const (
	mostMisses = 4           // in a row; with the last of them a pause begins
	minPause   = 4_000_000   // doubled with each further one
	maxPause   = 600_000_000 // the longest
	none       = -1          // no turn
)

// packager is what is known of the packager's certificates of a stream's parts.
type packager struct {
	heard   int64 // when one came last that counts
	loading int64 // turn of the part whose certificate is being loaded, or none
	since   int64 // when that began
	misses  int   // in a row
	again   int64 // nothing is loaded before
}

// counts says whether the node can be a source by the packager's word.
func (k *packager) counts(now, part int64) bool { return now-k.heard < silence*part && now >= k.again }

// missed notes that a load has brought nothing.
func (k *packager) missed(now int64) {
	k.loading = none
	if k.misses++; k.misses >= mostMisses {
		k.again = now + min(int64(minPause)<<min(k.misses-mostMisses, 10), maxPause)
	}
}

// certificate asks for the packager's certificate of a part, if this node is to be the source of one of the pieces that the origin is asked
// for: those of runs or, without runs, all. It is also called for a part of unknown length, which the origin is not asked for yet.
func (y *player) certificate(now int64, p *part, runs []Run) {
	s := y.stream
	k := &s.signed
	if y.asked == nil || !y.asked.Packaged || p.content != nil || p.sought || s.seeded(now) || !watched(s) || !y.leads(now, p, runs) {
		return
	}
	if late(s, now); k.loading != none || now < k.again {
		return
	}
	p.sought, k.loading, k.since = true, int64(p.turn), now
	s.node.do(Certificate{s.id, p.turn})
}

// late gives up a load that has taken as long as a part plays: the part is of no use to children by then.
func late(s *Stream, now int64) {
	if k := &s.signed; k.loading != none && now-k.since >= s.set.Part {
		k.missed(now)
		s.node.do(GiveUp{s.id})
	}
}

// watched says whether a linked viewer follows the stream.
func watched(s *Stream) bool {
	for _, l := range s.node.links {
		if !l.seed && l.following(s.id) {
			return true
		}
	}
	return false
}

func (y *player) leads(now int64, p *part, runs []Run) bool {
	for stripe := range stripes {
		asked := runs == nil || slices.ContainsFunc(runs, func(r Run) bool {
			for i := r.First; i <= r.Last; i++ {
				if p.stripe(i) == stripe {
					return true
				}
			}
			return false
		})
		if asked && mesh.Leads(y.stream.mesh, now, stripe) {
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
	} else {
		s.signed.missed(now)
	}
	s.flush(now)
}
