package seed

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// sharing is the seed's part in the low-latency streams of one title.
type sharing struct {
	all   *streams
	title *title
	links atomic.Int32 // guarded by streams.mu where it is compared

	mu       sync.Mutex
	node     *parts.Node                // guarded by mu
	viewers  map[parts.ID]*viewerLink   // guarded by mu
	wanted   map[segment.ID]bool        // guarded by mu: streams that viewers have said that they follow
	followed map[segment.ID]*openStream // guarded by mu
	left     map[segment.ID]int64       // guarded by mu: streams that viewers have left of late: when, µs
	acts     []parts.Act                // guarded by mu
	acting   bool                       // guarded by mu
	looked   int64                      // guarded by mu: when the trees were last looked after, µs
	shed     int64                      // guarded by mu: bytes, as they were last counted
}

func newSharing(all *streams, t *title) *sharing {
	return &sharing{
		all: all, title: t, node: parts.New(parts.Config{Self: all.self, Seed: true}), viewers: map[parts.ID]*viewerLink{},
		wanted: map[segment.ID]bool{}, followed: map[segment.ID]*openStream{}, left: map[segment.ID]int64{},
	}
}

// micros is the node's clock. It goes on as it is when the machine's is set: leases and pauses are not as old as that says.
func (s *sharing) micros() int64 { return s.all.now().Sub(s.all.began).Microseconds() }

// with hands the node to f, and then does what is to be done: one after the other, and under no lock.
func (s *sharing) with(f func(n *parts.Node, now int64)) {
	s.mu.Lock()
	f(s.node, s.micros())
	s.acts = append(s.acts, s.node.Take()...)
	if s.acting {
		s.mu.Unlock()
		return
	}
	s.acting = true
	for len(s.acts) > 0 {
		acts := s.acts
		s.acts = nil
		s.mu.Unlock()
		for _, a := range acts {
			s.act(a)
		}
		s.mu.Lock()
	}
	s.acting = false
	s.mu.Unlock()
}

func (s *sharing) linked(v *viewerLink) {
	s.with(func(n *parts.Node, now int64) {
		n.Gone(now, v.from.session) // the viewer's link before
		s.viewers[v.from.session] = v
		n.Linked(v.from.session, false)
	})
}

func (s *sharing) gone(v *viewerLink) {
	s.with(func(n *parts.Node, now int64) {
		if s.viewers[v.from.session] == v {
			delete(s.viewers, v.from.session)
			n.Gone(now, v.from.session)
		}
	})
	s.review()
}

func (s *sharing) heard(v *viewerLink, m peer.Message) {
	s.with(func(n *parts.Node, now int64) {
		if s.viewers[v.from.session] != v {
			return
		}
		n.Heard(now, v.from.session, m)
		if follow, is := m.(peer.Follow); is {
			s.reviewOne(n, now, follow.Stream)
		}
	})
}

// sent says that a link has sent a pushed piece, or has given it up.
func (s *sharing) sent(v *viewerLink) {
	s.with(func(n *parts.Node, now int64) {
		if s.viewers[v.from.session] == v {
			n.Sent(now, v.from.session)
		}
	})
}

// review begins to follow the streams that are wanted and listed, and leaves those that no viewer follows. It counts the bytes that have been
// shed since the last time, and returns how many streams are followed.
func (s *sharing) review() (followed int) {
	s.with(func(n *parts.Node, now int64) {
		var lacks *segment.ID
		for id := range s.wanted {
			if s.reviewOne(n, now, id) {
				lacks = &id
			}
		}
		if lacks != nil {
			s.wantUnlisted(n, *lacks)
		}
		for id := range s.left {
			if !s.justLeft(now, id) {
				delete(s.left, id)
			}
		}
		followed = len(s.followed)
		s.all.sink.Add(mPartShed, float64(n.Counts.Shed-s.shed))
		s.shed = n.Counts.Shed
	})
	return followed
}

// reviewOne does so for one stream, and says whether it is wanted and not listed. Its cost is not that of all others: viewers say what they
// like. Under mu.
func (s *sharing) reviewOne(n *parts.Node, now int64, id segment.ID) (lacks bool) {
	r := s.followed[id]
	switch {
	case n.Followers(id) == 0:
		delete(s.wanted, id)
	case r == nil:
		s.wanted[id] = true
		return !s.justLeft(now, id) && !s.begin(n, now, id)
	case s.title.follows(r.manifest) && s.paid(n, r):
		return false
	}
	if r != nil {
		s.left[id] = now
		s.leave(n, now, r)
	}
	return false
}

// leave leaves a stream. Under mu.
func (s *sharing) leave(n *parts.Node, now int64, r *openStream) {
	delete(s.followed, r.id)
	n.Unfollow(now, r.id)
	r.cancel()
}

// justLeft says whether viewers have left a stream less than a tick ago. It is not followed again yet: each change is told to all links of the
// title, and a link ends whose viewer is told too much. Under mu.
func (s *sharing) justLeft(now int64, id segment.ID) bool {
	at, was := s.left[id]
	return was && now-at < tickEvery.Microseconds()
}

// begin follows a stream if it is one of the title's, and the site has a place for it; false: it is none. Under mu.
func (s *sharing) begin(n *parts.Node, now int64, id segment.ID) (listed bool) {
	ix, path, part, chunked := s.title.stream(id)
	if ix == nil {
		return false // the manifest beside may list it, which review has read
	}
	payer, ok := s.title.site.followed.take(s.following(n, id))
	if !ok {
		return true // it is looked again
	}
	r := newOpenStream(s, id, ix.manifest, path, payer)
	follow := (&rendition{openStream: r}).follow
	if chunked != nil {
		follow = (&chunks{openStream: r, part: part, after: s.all.now()}).follow
	}
	if !s.all.tasks.begin(follow) {
		r.cancel()
		s.title.site.followed.leave(payer)
		return true
	}
	s.followed[id] = r
	if chunked == nil {
		r.opens(n, now, part)
	}
	return true
}

// wantUnlisted has the manifests read, for a viewer that follows a stream which is not listed. One stream a review: viewers say what they
// like. Under mu.
func (s *sharing) wantUnlisted(n *parts.Node, id segment.ID) {
	if viewers := s.following(n, id); len(viewers) > 0 {
		s.title.wantUnlisted(viewers[0])
	}
}

// following are the viewers that follow a stream. Under mu.
func (s *sharing) following(n *parts.Node, id segment.ID) (viewers []party) {
	for session, v := range s.viewers {
		if n.Follows(session, id) {
			viewers = append(viewers, v.from)
		}
	}
	return viewers
}

// paid says whether a viewer that follows a stream pays for its place: another one does, where the one that did has left. Under mu.
func (s *sharing) paid(n *parts.Node, r *openStream) (ok bool) {
	if n.Follows(r.payer.session, r.id) {
		return true
	}
	payer, ok := s.title.site.followed.pass(r.payer, s.following(n, r.id))
	if ok {
		r.payer = payer
	}
	return ok
}

// restart leaves a stream. It is followed anew if it is wanted still.
func (s *sharing) restart(r *openStream) {
	s.with(func(n *parts.Node, now int64) {
		if s.followed[r.id] == r {
			s.leave(n, now, r)
		}
	})
}

// payer is a link whose viewer follows a stream and may have the origin asked, and for a playlist can pay its toll; nil: none may.
func (s *sharing) payer(id segment.ID, toll bool) *viewerLink {
	s.mu.Lock()
	var all []*viewerLink
	for session, v := range s.viewers {
		if s.node.Follows(session, id) {
			all = append(all, v)
		}
	}
	s.mu.Unlock()
	for _, v := range all {
		if a := v.conn.payer(); a != nil && (!toll || s.title.catalog.tolls.covers(v.from)) && s.all.supply.budgets.mayFetch(a) {
			return v
		}
	}
	return nil
}

// act does one thing that is to be done.
func (s *sharing) act(a parts.Act) {
	switch a := a.(type) {
	case parts.Say:
		s.say(a)
	case parts.Push:
		s.push(a)
	case parts.Blame:
		s.blame(a)
	}
}

func (s *sharing) viewer(id parts.ID) *viewerLink {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.viewers[id]
}

// say sends a message. A certificate is paid for, and not sent to a viewer that does not read; without one the part's pieces are of no
// use.
func (s *sharing) say(a parts.Say) {
	v := s.viewer(a.To)
	if v == nil {
		return
	}
	session, _ := v.conn.parts()
	if session == nil {
		return
	}
	if m, ok := a.Message.(peer.Part); ok {
		if payer := v.conn.payer(); payer == nil || !transfer.HasControlRoom(v.conn.wire()) || !s.all.supply.budgets.maySend(payer, len(m.Raw)) {
			s.notTold(v, m.Push)
			return
		}
		v.use()
	}
	session.Send(a.Message)
}

// notTold notes a push that a viewer was not told of.
func (s *sharing) notTold(v *viewerLink, push uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.untold == nil || len(v.untold) >= parts.Kept {
		v.untold = map[uint32]bool{}
	}
	v.untold[push] = true
}

func (s *sharing) push(a parts.Push) {
	v := s.viewer(a.To)
	if v == nil {
		return
	}
	push, _, _ := peer.Pushed(a.Request)
	s.mu.Lock()
	untold := v.untold[push]
	s.mu.Unlock()
	_, upload := v.conn.parts()
	if upload == nil || untold {
		s.sent(v)
		return
	}
	upload.Push(a.Request, a.Data)
}

func (s *sharing) blame(a parts.Blame) {
	v := s.viewer(a.From)
	if v == nil {
		return
	}
	var err error
	switch a.Why {
	case parts.Unsolicited:
		err = v.unasked(a.Bytes)
	case parts.TooMuch:
		err = transfer.Overrun(peer.LimitMessages)
	}
	if session, _ := v.conn.parts(); session != nil && err != nil {
		session.Fail(err)
	}
}

// told notes a part that is certified, and tells it, with its pieces where these are pushed; false: the stream was left. What
// comes after something later is told to none.
func (s *sharing) told(r *openStream, turn uint32, h *held, pushed bool) (ok bool) {
	c := parts.Content{Segment: h.id, Length: len(h.data), Digests: h.cert.Digests, Raw: h.cert.Bytes()}
	s.with(func(_ *parts.Node, now int64) {
		if s.followed[r.id] != r {
			return
		}
		ok = true
		r.stream.Listed(now, turn, h.id, len(h.data))
		r.stream.Certify(now, turn, c)
		for i := range segment.Pieces(int64(len(h.data))) {
			if from := i * segment.PieceSize; pushed {
				r.stream.Have(now, turn, i, h.data[from:from+segment.PieceLen(int64(len(h.data)), i)])
			}
		}
	})
	return ok
}

// decideEvery is how often the trees of a stream are looked after.
const decideEvery = parts.DecideEvery * time.Microsecond

// look has the trees looked after: those of all streams of the title, so not by each of them.
func (s *sharing) look() {
	s.with(func(n *parts.Node, now int64) {
		if now-s.looked >= parts.DecideEvery/2 {
			s.looked = now
			n.Tick(now)
		}
	})
}
