package viewer

import (
	"cmp"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/transfer"
)

// Reference is one segment of a playlist.
type Reference struct {
	URL         string
	Ranged      bool // only bytes First to Last, inclusive
	First, Last int64
	Start       time.Duration // on the timeline of the presentation
	Duration    time.Duration
}

func (r Reference) fetch() Fetch {
	return Fetch{URL: r.URL, Ranged: r.Ranged, First: r.First, Last: r.Last}
}

// request is one segment that the player asks for.
type request struct {
	Reference
	playlist  string // URL of the media playlist that names it; empty: unknown
	rendition string
	bitrate   int64 // bits per second
	adaptive  bool
	live      bool                 // more may follow than is listed
	part      bool                 // of a segment that may grow still
	turn      uint32               // of a part
	parts     []listedPart         // of a part: the latest that its playlist lists; nil: it cannot be shared
	zero      time.Duration        // of a live stream: what makes a moment of the timeline one that all its viewers mean
	deadline  func() time.Duration // from now until the playhead is there
	track     int                  // of those that are played side by side
	upcoming  []Reference          // up to schedule.MostAhead
	made      *making              // of low-latency DASH: it may still be made; nil: it is complete, or cannot be asked for before it is
}

// making is a segment that may still be made.
type making struct {
	sequence int64                    // where it is on the timeline of its MPD (spec/parts.md, "Chunks")
	lasts    time.Duration            // as its template says
	complete time.Time                // by the clock of the MPD
	left     func() time.Duration     // until the playhead is there; below zero: it is within
	take     func(at int64, b []byte) // gives the player bytes, from where they are in the segment
}

// fetch is the request to the origin. The bytes of a segment that may still be made are the player's as they come.
func (r request) fetch() Fetch {
	f := r.Reference.fetch()
	if m := r.made; m != nil {
		at := int64(0)
		f.Growing = &Growing{Plays: r.Duration, Heard: func(b []byte, _ bool) {
			m.take(at, b)
			at += int64(len(b))
		}}
	}
	return f
}

// Result is a segment on its way to the player.
type Result struct {
	Reference
	Rendition string
	Pieces    [][]byte // in order; shared, not to be changed
	Source    Source   // where most of the bytes came from
	Reason    schedule.Reason
	Bytes     map[Source]int64
	Took      time.Duration // from the player's request
}

// Len is the number of bytes.
func (r *Result) Len() int {
	n := 0
	for _, p := range r.Pieces {
		n += len(p)
	}
	return n
}

// load is one request of the player on its way.
type load struct {
	request request
	done    func(*Result, error)
	started time.Time
	seg     *seg
	over    bool
}

// seg is what the engine knows of one segment.
type seg struct {
	id      string // hexadecimal; empty for what is none of the site's segments
	key     segment.ID
	name    segment.Name
	ref     Reference
	bitrate int64
	// playlist is what named it when the player asked last; empty: it has not
	playlist string
	loads    []*load
	askedUs  int64

	certification
	originState

	sources     map[int]Source // of verified pieces
	ahead       map[int]int    // bytes of the pieces that came before a load waited for them, until they are played or lost
	pieceReason schedule.Reason
}

// certification is what is known of a segment's certificate.
type certification struct {
	cert      *certificate.Certificate
	target    *transfer.Target // made of cert
	state     schedule.Certification
	certAsked int64                        // µs; -1 never
	certHeld  int64                        // µs; 0 not
	certPeers []string                     // that were asked, in order
	disputed  *[2]*certificate.Certificate // disagree, the older first: origin only until a revocation covers it
	formerly  *certificate.Certificate     // under which pieces were sent until then
	withdrawn time.Time                    // when that was
}

// asked notes that a peer was asked for it.
func (c *certification) asked(peer string, nowUs int64) {
	c.state = schedule.CertAsked
	if c.certAsked < 0 {
		c.certAsked = nowUs
	}
	c.certPeers = append(c.certPeers, peer)
}

// none notes that a peer has none to show. Nothing is outstanding any more unless another was asked later.
func (c *certification) none(peer string) {
	if n := len(c.certPeers); c.state == schedule.CertAsked && n > 0 && c.certPeers[n-1] == peer {
		c.state = schedule.CertNone
	}
}

// gone opens a gone peer's unanswered request again.
func (c *certification) gone(peer string) {
	at := slices.Index(c.certPeers, peer)
	if at < 0 {
		return
	}
	c.certPeers = slices.Delete(c.certPeers, at, at+1)
	if c.state == schedule.CertAsked && len(c.certPeers) == 0 {
		c.state = schedule.CertNone
	}
}

// reset lets go of it, and of the peers that were asked.
func (c *certification) reset(state schedule.Certification) {
	c.cert, c.target, c.state, c.certPeers, c.certAsked, c.certHeld = nil, nil, state, nil, -1, 0
}

// originState is the origin's part in a segment.
type originState struct {
	origin       schedule.Origin
	fetch        *originFetch
	originReason schedule.Reason
	originErr    error
	uncertified  []byte // what it sent, until there is a certificate to hold it against
}

func (s *seg) wanted() bool { return len(s.loads) > 0 }

// part is the fetch of pieces from to until alone.
func (s *seg) part(from, until int) Fetch {
	f := s.ref.fetch()
	f.Ranged = true
	f.Last = f.First + min(int64(until)*segment.PieceSize, s.cert.Length) - 1
	f.First += int64(from) * segment.PieceSize
	return f
}

func newSeg(r Reference, bitrate int64) *seg {
	return &seg{
		ref: r, bitrate: bitrate, askedUs: -1, sources: map[int]Source{},
		certification: certification{state: schedule.CertNone, certAsked: -1},
		originState:   originState{origin: schedule.OriginIdle, originReason: schedule.NoHolder},
	}
}

// maxSegments is how many segments are remembered.
const maxSegments = 1024

// segments are the known segments by ID, and the way from a URL to one.
type segments struct {
	rules *site.Site
	byID  map[string]*seg
	order []string // as they became known
}

// resolve returns the segment of a reference; it fails when the URL is none of the site's.
func (b *segments) resolve(r Reference, bitrate int64) (*seg, error) {
	name, err := b.name(r)
	if err != nil {
		return nil, err
	}
	id := segment.NewID(b.rules.Name(), name)
	if s := b.byID[id.String()]; s != nil {
		return s, nil
	}
	s := newSeg(r, bitrate)
	s.id, s.key, s.name = id.String(), id, name
	b.byID[s.id] = s
	b.order = append(b.order, s.id)
	return s, nil
}

// name is that of what a reference leads to; it fails when the URL is none of the site's.
func (b *segments) name(r Reference) (segment.Name, error) {
	key, err := b.rules.Key(r.URL)
	if err != nil {
		return "", err
	}
	name := segment.WholeName(key)
	if r.Ranged {
		if name = segment.RangeName(key, r.First, r.Last); name == "" {
			return "", site.ErrBadPath
		}
	}
	return name, nil
}

// id is that of a part, or of a stream by its playlist; ok is false when the URL is none of the site's.
func (b *segments) id(r Reference) (id segment.ID, ok bool) {
	name, err := b.name(r)
	if err != nil {
		return id, false
	}
	return segment.NewID(b.rules.Name(), name), true
}

// all lists the segments in the order in which they became known.
func (b *segments) all() []*seg {
	out := make([]*seg, len(b.order))
	for i, id := range b.order {
		out[i] = b.byID[id]
	}
	return out
}

// prune forgets the oldest segments that nothing needs.
func (b *segments) prune(needed func(*seg) bool) {
	if len(b.order) <= maxSegments {
		return
	}
	left := len(b.order)
	b.order = slices.DeleteFunc(b.order, func(id string) bool {
		if left <= maxSegments/2 || needed(b.byID[id]) {
			return false
		}
		delete(b.byID, id)
		left--
		return true
	})
}

// sourceOf is where most of the bytes came from.
func sourceOf(bytes map[Source]int64) Source {
	switch seed, peers := bytes[FromSeed], bytes[FromPeer]; {
	case bytes[FromOrigin] > seed+peers:
		return FromOrigin
	case seed > peers:
		return FromSeed
	}
	return FromPeer
}

// inOrder sorts segments as they are played.
func inOrder(list []*seg) {
	slices.SortFunc(list, func(a, b *seg) int {
		return cmp.Or(cmp.Compare(a.ref.Start, b.ref.Start), cmp.Compare(a.id, b.id))
	})
}
