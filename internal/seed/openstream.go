package seed

import (
	"context"
	"time"

	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/segment"
)

// What came of a part of a stream that is followed.
const (
	partSigned = "signed"
	partUnpaid = "unpaid"
	partFailed = "failed"
	partLate   = "late"
	partIdle   = "idle"
)

// openStream is a low-latency stream that is followed, whatever its parts are.
type openStream struct {
	sharing  *sharing
	id       segment.ID
	manifest string // that lists it
	path     string // of the playlist, or the name of the representation
	ctx      context.Context
	cancel   context.CancelFunc

	payer  party         // guarded by sharing.mu: of the stream's place
	stream *parts.Stream // guarded by sharing.mu; nil: viewers are not told yet that parts come
}

// question is what the origin was asked under: for which viewer, when, and what held then.
type question struct {
	payer *viewerLink
	asked time.Time
	under standing
}

func newOpenStream(s *sharing, id segment.ID, manifest, path string, payer party) *openStream {
	o := &openStream{sharing: s, id: id, manifest: manifest, path: path, payer: payer}
	o.ctx, o.cancel = context.WithCancel(s.all.tasks.ctx)
	return o
}

// index is what the manifest lists, if it is in memory.
func (o *openStream) index() *index { return o.sharing.title.peek(o.manifest) }

// want has the manifest read again while the stream is followed for a viewer, which pays for it; nil: there is no room for it.
func (o *openStream) want(p party) *index {
	t := o.sharing.title
	t.chosen(p)
	return t.wantOf(o.manifest, p)
}

// opens has the viewers told that parts of the stream come, of which each plays so long. Under sharing.mu.
func (o *openStream) opens(n *parts.Node, now int64, part time.Duration) {
	if o.sharing.followed[o.id] == o && o.stream == nil {
		o.stream = n.Follow(now, o.id, parts.Settings{Part: part.Microseconds()})
	}
}

// leave gives back the stream's place.
func (o *openStream) leave() { o.sharing.title.site.followed.leave(o.charged()) }

// charged is the viewer that the stream's place is charged to.
func (o *openStream) charged() party {
	o.sharing.mu.Lock()
	defer o.sharing.mu.Unlock()
	return o.payer
}

func (o *openStream) rest(pause time.Duration, ticks *time.Ticker) {
	if pause <= 0 {
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-o.ctx.Done():
			return
		case <-timer.C:
			return
		case <-ticks.C:
			o.sharing.look()
		}
	}
}

// idle says whether nothing is certified for the title now, as with segments.
func (o *openStream) idle() bool {
	s := o.sharing
	site := s.title.site
	return s.title.rests() || s.all.supply.issuer.takedowns.off(site.name) || s.title.audience() < site.rules.Config().Policy.CertifyFrom
}

func (o *openStream) asks(payer *viewerLink, name segment.Name) question {
	s := o.sharing
	return question{payer, s.all.now(), s.all.supply.issuer.standing(s.title.site.name, name)}
}
