package viewer

import (
	"maps"
	"slices"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// peers are the linked peers of an engine, and what is remembered of those that were.
type peers struct {
	byID   map[string]*remote
	bans   map[string]bool // not to be linked again
	opened int             // links over which hellos were exchanged
	closed map[peer.CloseReason]int
}

func newPeers() *peers {
	return &peers{byID: map[string]*remote{}, bans: map[string]bool{}, closed: map[peer.CloseReason]int{}}
}

// inOrder lists the peers by ID: what is done to several is done in one order, so that a run can be repeated.
func (p *peers) inOrder() []*remote {
	out := make([]*remote, 0, len(p.byID))
	for _, id := range slices.Sorted(maps.Keys(p.byID)) {
		out = append(out, p.byID[id])
	}
	return out
}

// remove forgets a peer whose link has ended.
func (p *peers) remove(r *remote, reason peer.CloseReason) {
	p.closed[reason]++
	if p.byID[r.id] == r {
		delete(p.byID, r.id)
	}
}

// linked counts the open links by role and path.
func (p *peers) linked() map[string]int {
	out := map[string]int{}
	for _, r := range p.byID {
		if r.ready {
			out[string(r.role)+"/"+string(r.path)]++
		}
	}
	return out
}

// announce tells what is held of a segment. whole: it is of a live stream, and its last piece has come.
func (p *peers) announce(id string, whole bool) {
	for _, r := range p.inOrder() {
		r.announce(id, whole)
	}
}

// announced says whether a linked viewer has said that it holds something of a segment.
func (p *peers) announced(s *seg) bool {
	for _, r := range p.byID {
		if r.ready && !r.noUpload && r.role == schedule.Viewer {
			if _, ok := r.holdings.holds[s.id]; ok {
				return true
			}
		}
	}
	return false
}

// cancel takes back what is asked for of a segment.
func (p *peers) cancel(s *seg) {
	for _, r := range p.inOrder() {
		r.download.Cancel(func(o transfer.Order) bool { return o.Target.Segment == s.key })
	}
}

// outdone takes back what is asked for of a segment, or of a piece of it, since another source is quicker.
func (p *peers) outdone(s *seg, piece int) {
	for _, r := range p.inOrder() {
		r.late(s, r.download.Cancel(func(o transfer.Order) bool {
			return o.Target.Segment == s.key && (piece < 0 || o.Piece == piece)
		}))
	}
}

// withdraw refuses what peers asked for of a segment that is no longer held.
func (p *peers) withdraw(s *seg) {
	for _, r := range p.inOrder() {
		r.upload.Withdraw(s.key)
	}
}

// behind is how many requests of the background are outstanding.
func (p *peers) behind() (n int) {
	for _, r := range p.byID {
		for _, o := range r.download.Orders() {
			if o.Lane == peer.Background && !o.Checking {
				n++
			}
		}
	}
	return n
}

// flying says which pieces of a segment that are not held are on their way.
func (p *peers) flying(s *seg, held *entry) map[int]bool {
	out := map[int]bool{}
	for _, r := range p.byID {
		for _, o := range r.download.Orders() {
			if o.Target == s.target && held.pieces[o.Piece] == nil {
				out[o.Piece] = true
			}
		}
	}
	return out
}
