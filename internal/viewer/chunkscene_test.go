package viewer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// chunkStream is how the broadcast of a scene is published by chunks, as low-latency DASH.
type chunkStream struct {
	s      *scene
	each   int // chunks of a segment
	late   func(seq, n int) time.Duration
	breaks func(seq, n int) bool // the origin's answer ends with an error before a chunk
	other  func(*node) bool      // a node gets another version of all chunks
	dead   bool                  // the origin's answers end before their first byte, and no error comes
	asked  map[string]int        // requests for segments that were not complete, by node
	hls    bool                  // each chunk is a part of a playlist, in a file of its own

	unshared bool // the origin's answers are not to be stored

	packager *chunkPackager // nil: none signs the chunks or parts
}

// byChunks has the broadcast of a scene published by chunks, with a seed that tells them.
func (s *scene) byChunks(each int) *chunkStream {
	c := &chunkStream{
		s: s, each: each, late: func(int, int) time.Duration { return 0 }, breaks: func(int, int) bool { return false },
		other: func(*node) bool { return false }, asked: map[string]int{},
	}
	for file, data := range s.film.files {
		if !strings.HasSuffix(file, ".ts") {
			continue
		}
		data = bytes.Clone(data)
		for n := range each {
			box(data[c.begins(data, n):], "moof", 8)
			box(data[c.begins(data, n)+8:], "mdat", c.begins(data, n+1)-c.begins(data, n)-8)
		}
		s.film.files[file] = data
	}
	s.wrap = func(o origin) Origin { return chunkOrigin{o, c} }
	s.seed.parts = newPartSeed(c)
	return c
}

// pushesParts has the broadcast of a scene published in so many parts a segment, with a seed that pushes them.
func (s *scene) pushesParts(each int) *chunkStream {
	c, _ := s.partedIn(each, true)
	s.seed.parts = newPartSeed(c)
	return c
}

func box(b []byte, kind string, size int) {
	binary.BigEndian.PutUint32(b, uint32(size))
	copy(b[4:8], kind)
}

// begins is where a chunk of a segment begins.
func (c *chunkStream) begins(data []byte, n int) int { return n * len(data) / c.each }

// due is when a chunk is made by a packager that is not late.
func (c *chunkStream) due(seq, n int) time.Time {
	b := c.s.film.live
	return b.published(seq - 1).Add(time.Duration(n+1) * b.duration / time.Duration(c.each))
}

// made is when a chunk is.
func (c *chunkStream) made(seq, n int) time.Time { return c.due(seq, n).Add(c.late(seq, n)) }

// chunkOrigin sends a segment while it is made.
type chunkOrigin struct {
	origin
	c *chunkStream
}

// Get implements Origin.
func (o chunkOrigin) Get(f Fetch, progress func(int64), done func(Fetched, error)) (cancel func()) {
	var r, seq int
	c, w, b := o.c, o.node.w, o.film.live
	if c.packager != nil && strings.HasSuffix(f.URL, certificate.ListSuffix) && strings.Contains(f.URL, ".ts") {
		return c.packager.get(o.origin, f, progress, done)
	}
	answers := done
	done = func(got Fetched, err error) {
		got.Unshared = c.unshared
		answers(got, err)
	}
	if n, _ := fmt.Sscanf(path(f.URL), "/media/film/%d/seg-%d.ts", &r, &seq); n != 2 || !w.now.Before(c.made(seq, c.each-1)) {
		return o.origin.Get(f, progress, done)
	}
	over := false
	end := func(got Fetched, err error) {
		if !over {
			over = true
			done(got, err)
		}
	}
	w.After(3*o.film.node.away(o.node), func() {
		c.asked[o.node.name]++
		o.film.sent[path(f.URL)]++
		if o.film.broken || w.now.Before(b.published(seq-1).Add(b.duration/time.Duration(c.each)/2)) {
			end(Fetched{}, errors.New("404 Not Found"))
			return
		}
		o.grows(f, seq, func() bool { return over }, progress, end)
	})
	return func() { end(Fetched{}, errors.New("canceled")) }
}

// grows sends a segment chunk by chunk.
func (o chunkOrigin) grows(f Fetch, seq int, over func() bool, progress func(int64), end func(Fetched, error)) {
	c, w, data := o.c, o.node.w, o.film.files[path(f.URL)]
	if c.other(o.node) {
		data = bytes.Clone(data)
		for n := range c.each {
			data[c.begins(data, n)+20] ^= 1
		}
	}
	var first time.Time
	var send func(n int)
	send = func(n int) {
		if wait := c.made(seq, n).Sub(w.now); wait > 0 {
			w.After(wait, func() { send(n) })
			return
		}
		if over() || c.dead {
			return
		}
		if c.breaks(seq, n) {
			end(Fetched{}, errors.New("unexpected EOF"))
			return
		}
		from, to := c.begins(data, n), c.begins(data, n+1)
		o.film.node.send(o.node, to-from, func() {
			if n+1 < c.each {
				send(n + 1)
			}
		}, func() {
			if over() {
				return
			}
			if first.IsZero() {
				first = w.now
			}
			if f.Growing != nil {
				f.Growing.Heard(data[from:to], c.unshared)
			}
			if progress(int64(to)); to == len(data) {
				o.film.bytes += int64(to)
				end(Fetched{Data: data, URL: f.URL, Transfer: w.now.Sub(first)}, nil)
			}
		})
	}
	send(0)
}

// partSeed is what a simulated seed does with a stream of chunks.
type partSeed struct {
	c      *chunkStream
	node   *parts.Node
	links  map[parts.ID]*seedLink
	acting bool
	ends   time.Duration                                                          // behind the last chunk, when the end of a segment is told
	tells  func(seq, n int, chunk, whole []byte) (name segment.Name, data []byte) // what a seed certifies of a chunk, or of the end; nil: what is there
}

func newPartSeed(c *chunkStream) *partSeed {
	p := &partSeed{c: c, node: parts.New(parts.Config{Self: c.s.seed.id, Seed: true}), links: map[parts.ID]*seedLink{}}
	var tick func()
	tick = func() {
		p.with(func(n *parts.Node, now int64) { n.Tick(now) })
		c.s.w.After(parts.DecideEvery*time.Microsecond, tick)
	}
	tick()
	for r := range 9 {
		if c.s.film.files[segmentFile(r, 0)] != nil {
			p.follow(r)
		}
	}
	return p
}

func segmentFile(r, seq int) string { return fmt.Sprintf("/media/film/%d/seg-%d.ts", r, seq) }

// follow follows a rendition from the next segment on.
func (p *partSeed) follow(r int) {
	var stream *parts.Stream
	c := p.c
	name := fmt.Sprintf("%s.%d", mpdPath, r)
	if c.hls {
		name = fmt.Sprintf("/media/film/%d/index.m3u8", r)
	}
	id := segment.NewID("test", segment.WholeName(name))
	b := c.s.film.live
	p.with(func(n *parts.Node, now int64) {
		stream = n.Follow(now, id, parts.Settings{Part: (b.duration / time.Duration(c.each)).Microseconds()})
	})
	var tell func(seq, n int)
	tell = func(seq, n int) {
		if wait := c.made(seq, n).Add(2 * c.s.seed.node.delay).Sub(c.s.w.now); wait > 0 {
			c.s.w.After(wait, func() { tell(seq, n) })
			return
		}
		p.told(stream, id, r, seq, n)
		if n++; n == c.each {
			if ended := seq; !c.hls {
				c.s.w.After(p.ends, func() { p.told(stream, id, r, ended, parts.End) })
			}
			seq, n = seq+1, 0
		}
		if seq < b.ends {
			tell(seq, n)
		}
	}
	tell(b.edge()+1, 0)
}

// told certifies a chunk, or the end, and tells it.
func (p *partSeed) told(stream *parts.Stream, id segment.ID, r, seq, n int) {
	if p.node.Followers(id) == 0 {
		return
	}
	c, seed := p.c, p.c.s.seed
	whole := c.s.film.files[segmentFile(r, seq)]
	data, name := whole, segment.WholeName(segmentFile(r, seq))
	if n < parts.End {
		from, to := c.begins(whole, n), c.begins(whole, n+1)
		data, name = whole[from:to], segment.RangeName(segmentFile(r, seq), int64(from), int64(to-1))
		if c.hls {
			name = segment.WholeName(partFile(r, seq, n))
		}
	}
	if p.tells != nil {
		if as, other := p.tells(seq, n, data, whole); as != "" {
			name, data = as, other
		}
	}
	raw := seed.issue(name, data)
	key := segment.NewID("test", name)
	if n == parts.End {
		seed.held[key], seed.certs[key] = data, raw
	}
	turn, _ := parts.Turn(int64(seq), n)
	p.with(func(_ *parts.Node, now int64) {
		stream.Listed(now, turn, key, len(data))
		stream.Certify(now, turn, parts.Content{Segment: key, Length: len(data), Digests: certificate.DigestPieces(data), Raw: raw})
		for i := range segment.Pieces(int64(len(data))) {
			if n < parts.End {
				stream.Have(now, turn, i, pieceOf(data, i))
			}
		}
	})
}

func (p *partSeed) now() int64 { return p.c.s.w.now.Sub(worldBegin).Microseconds() }

// with hands the node to f, and does what is to be done then.
func (p *partSeed) with(f func(n *parts.Node, now int64)) {
	if f(p.node, p.now()); p.acting {
		return
	}
	p.acting = true
	for acts := p.node.Take(); len(acts) > 0; acts = p.node.Take() {
		for _, a := range acts {
			switch a := a.(type) {
			case parts.Say:
				p.links[a.To].session.Send(a.Message)
			case parts.Push:
				p.links[a.To].upload.Push(a.Request, a.Data)
				p.c.s.seed.uploader.Work()
			case parts.Blame:
				_ = p.links[a.From].session // the viewers of a scene do nothing that a seed blames
				panic(fmt.Sprintf("a viewer is blamed: %+v", a))
			}
		}
	}
	p.acting = false
}

func (p *partSeed) linked(l *seedLink, id parts.ID) {
	p.links[id] = l
	p.with(func(n *parts.Node, _ int64) { n.Linked(id, false) })
}

func (p *partSeed) gone(l *seedLink) {
	for id, other := range p.links {
		if other == l {
			p.with(func(n *parts.Node, now int64) { n.Gone(now, id) })
			delete(p.links, id)
		}
	}
}

func (p *partSeed) heard(l *seedLink, m peer.Message) {
	for id, other := range p.links {
		if other == l {
			p.with(func(n *parts.Node, now int64) { n.Heard(now, id, m) })
		}
	}
}

func (p *partSeed) sent(l *seedLink) {
	for id, other := range p.links {
		if other == l {
			p.with(func(n *parts.Node, now int64) { n.Sent(now, id) })
		}
	}
}

var _ transfer.Handler = (*seedLink)(nil)
