package viewer

import (
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// unlisted counts a segment that a seed does not know, if a query in its name may be why.
func (v *verification) unlisted(r *remote, id string, why peer.NoneReason) {
	if s := v.segments.byID[id]; s != nil && why == peer.NoneUnknown && r.role == schedule.Seed {
		v.ledger.unlisted(site.Parameters(s.name.Key()))
	}
}
