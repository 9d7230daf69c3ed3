package packaging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/mpd"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// Plan says what the lists of a playlist will have, and what of it has to be signed. A media playlist has one list, an MPD one for
// each representation.
type Plan struct {
	File    string // of the playlist
	Live    bool
	Kept    int      // segments of the lists before, unchanged
	Unsaid  int      // segments left out: of other sites or folders, objects that cannot be shared, or more than a list has
	Missing []string // files that are not there
	Refused error    // representations that have no list
	Parts   int      // that have a certificate beside them, once the plan is finished
	Bytes   int64    // to be read

	packager *Packager
	partly   bool          // a file is too short for what is named of it: more of it may come
	life     time.Duration // the shortest of a list's certificates
	lists    []*sheet
	latest   latest
	chunked  map[string]*playlist.Chunked // streams of chunks, by the name of their list
}

// sheet is one list of a plan.
type sheet struct {
	file    string        // that the list is named after
	life    time.Duration // of its certificates
	spans   []span
	entries [][]byte // nil: to be signed
}

// List is a list as it is to be written, and the name of the file that it is beside.
type List struct {
	File string
	Data []byte
}

// Segments is how many segments the lists will have.
func (pl *Plan) Segments() (n int) {
	for _, one := range pl.lists {
		n += len(one.spans)
	}
	return n
}

// Names says whether a file is there and the lists will have segments of it.
func (pl *Plan) Names(file string) bool {
	return slices.ContainsFunc(pl.lists, func(one *sheet) bool {
		return slices.ContainsFunc(one.spans, func(s span) bool { return s.file == file })
	})
}

// Plan reads a playlist or an MPD, a file below the folder, and the lists that it has. It fails with ErrMaster for a playlist that
// names others.
func (p *Packager) Plan(file string) (*Plan, error) {
	text, err := p.text(file)
	if err != nil {
		return nil, fmt.Errorf("certify %s: %w", file, err)
	}
	return p.PlanText(file, text)
}

// Plans are those of all playlists below the folder that list segments, in lexical order. Those that import variables may come last: the
// playlist that defines these is read before. The error is of those that cannot be read, beside the others.
func (p *Packager) Plans() (plans []*Plan, err error) {
	files, err := p.Playlists()
	if err != nil {
		err = fmt.Errorf("certify: %w", err)
	}
	all := len(files)
	for i := 0; i < len(files); i++ {
		plan, unread := p.Plan(files[i])
		switch {
		case unread == nil:
			plans = append(plans, plan)
		case i < all && errors.Is(unread, playlist.ErrVariables):
			files = append(files, files[i])
		case !errors.Is(unread, ErrMaster):
			err = errors.Join(err, unread)
		}
	}
	return plans, err
}

// PlanText is Plan for a playlist that is not written to its file yet.
func (p *Packager) PlanText(file string, text []byte) (*Plan, error) {
	at := (&url.URL{Path: p.Path + file}).EscapedPath()
	pl := &Plan{File: file, packager: p}
	m, media, err := playlist.List(p.Site, at, p.imports.of(file), text, p.Now())
	if err == nil && media == nil && len(m.Representations) == 0 {
		for _, path := range m.Paths {
			if named, ok := p.file(path); ok && m.Variables != nil {
				p.imports.note(named, m.Variables)
			}
		}
		err = ErrMaster
	}
	if err != nil {
		return nil, fmt.Errorf("certify %s: %w", file, err)
	}
	if media != nil {
		err = pl.sheet(file, media)
	} else {
		err = pl.sheets(m)
	}
	if err != nil {
		return nil, fmt.Errorf("certify %s: %w", file, err)
	}
	return pl, nil
}

// sheets plans the lists of an MPD.
func (pl *Plan) sheets(m *playlist.Renditions) error {
	pl.Refused, pl.chunked = m.Refused, map[string]*playlist.Chunked{}
	for _, rep := range m.Representations {
		name := mpd.Name(pl.File, rep.ID)
		for _, x := range rep.Indexes {
			if err := pl.packager.index(name, rep, x); err != nil {
				pl.Refused = errors.Join(pl.Refused, err)
			}
		}
		if err := pl.sheet(name, &rep.Listed); err != nil {
			return err
		}
		if rep.Chunked != nil && pl.packager.Parts {
			pl.chunked[name] = rep.Chunked
		}
	}
	return nil
}

// index reads the segment index of a representation out of its file.
func (p *Packager) index(name string, rep *playlist.Representation, x playlist.Index) error {
	file, ok := p.file(x.Path)
	if !ok {
		return fmt.Errorf("the index of %s is of another site or folder", name)
	}
	if info, err := p.Root.Stat(file); err != nil {
		return err
	} else if !info.Mode().IsRegular() {
		return fmt.Errorf("the index of %s: %w", name, errNoFile)
	}
	f, err := p.Root.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, x.First, x.Last-x.First+1))
	if err != nil {
		return err
	}
	return rep.Take(x, data)
}

// sheet plans one list.
func (pl *Plan) sheet(file string, media *playlist.Listed) error {
	p := pl.packager
	old, err := p.old(file)
	if err != nil {
		return err
	}
	life := p.Life
	if pl.Live = media.Live; pl.Live {
		life = min(media.Duration+liveGrace, certificate.MaxPackaged)
	}
	if pl.life == 0 || life < pl.life {
		pl.life = life
	}
	one := &sheet{file: file, life: life}
	p.spans(media, pl, one)
	pl.fit(one)
	pl.listParts(media)
	pl.lists = append(pl.lists, one)
	pl.keep(old, one)
	return nil
}

// fit leaves out what would make a list longer than viewers take: of a live playlist the oldest segments, else the last.
func (pl *Plan) fit(one *sheet) {
	room := certificate.MaxTaken - certificate.ListHead
	for i := range one.spans {
		at := i
		if pl.Live {
			at = len(one.spans) - 1 - i
		}
		if room -= certificate.EntrySize(pl.packager.Site.Name(), one.spans[at].name); room >= 0 {
			continue
		}
		pl.Unsaid += len(one.spans) - i
		if pl.Live {
			one.spans = one.spans[at+1:]
		} else {
			one.spans = one.spans[:at]
		}
		return
	}
}

// Sign signs what has to be, and returns the lists. What cannot be read is left out of them, and the error says so; without lists, nothing
// could be signed.
func (pl *Plan) Sign(ctx context.Context) ([]List, error) {
	fail := func(err error) error { return fmt.Errorf("certify %s: %w", pl.File, err) }
	unread := pl.signAll(ctx)
	if err := ctx.Err(); err != nil {
		return nil, fail(err)
	}
	var lists []List
	for _, one := range pl.lists {
		one.leaveOut()
		data, err := certificate.EncodeList(one.entries)
		if err != nil {
			return nil, fail(err)
		}
		lists = append(lists, List{one.file, data})
	}
	pl.remember()
	if unread != nil {
		return lists, fail(unread)
	}
	return lists, nil
}

// leaveOut drops the segments that could not be signed.
func (one *sheet) leaveOut() {
	spans, entries := one.spans[:0], one.entries[:0]
	for i, entry := range one.entries {
		if entry != nil {
			spans, entries = append(spans, one.spans[i]), append(entries, entry)
		}
	}
	one.spans, one.entries = spans, entries
}

// remember spares the next plan of the playlist the signatures of what stays as it is.
func (pl *Plan) remember() {
	p := pl.packager
	m := memory{key: p.Key, entries: make(map[segment.Name]signed, pl.Segments())}
	for _, one := range pl.lists {
		for i, s := range one.spans {
			m.entries[s.name] = signed{one.entries[i], s.modified}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[pl.File] = m
}

func (p *Packager) recall(file string) memory {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.known[file]; m.key == p.Key {
		return m
	}
	return memory{}
}

// since says whether the file of a span was not written to since a certificate of it was issued. One whose time is ahead of the clock was
// not, while that is the time that it had: it would have that of the clock. One whose time is before the certificate's may be another
// file, which is older, unless that is the time that it had.
func (m memory) since(s span, c *certificate.Certificate, now time.Time) bool {
	same := m.has(s, c) && s.modified.Equal(m.entries[s.name].modified)
	if s.modified.After(now) {
		return same
	}
	return s.modified.Before(c.IssuedAt) && (same || !m.has(s, c))
}

// has says whether a certificate of a span is what was signed, or found to hold, last.
func (m memory) has(s span, c *certificate.Certificate) bool {
	return bytes.Equal(m.entries[s.name].entry, c.Bytes())
}

// last is the certificate of a span that was signed, or found to hold, last; nil: there is none.
func (m memory) last(s span) *certificate.Certificate {
	c, err := certificate.ParseShort(m.entries[s.name].entry)
	if err != nil {
		return nil
	}
	return c
}

// unwritten notes that a list could not be written: what was signed is not to be read again for the next attempt.
func (pl *Plan) unwritten() {
	p := pl.packager
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.known[pl.File]
	m.unwritten = true
	p.known[pl.File] = m
}

// forget drops what is remembered of a playlist that is gone.
func (p *Packager) forget(file string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, file)
	p.imports.note(file, nil)
}

// keep takes over the entries of the list before that still hold.
func (pl *Plan) keep(old []byte, one *sheet) {
	p := pl.packager
	one.entries = make([][]byte, len(one.spans))
	had := map[segment.Name]*certificate.Certificate{}
	if list, err := certificate.ParseList(old); err == nil {
		for _, c := range list {
			had[c.Name] = c
		}
	}
	known, now := p.recall(pl.File), p.Now()
	for i, s := range one.spans {
		c := had[s.name]
		holds := known.holds(p, c, s, one.life, now)
		if !holds && known.unwritten {
			c = known.last(s)
			holds = known.holds(p, c, s, one.life, now)
		}
		if holds {
			one.entries[i] = c.Bytes()
			pl.Kept++
		} else {
			pl.Bytes += s.length
		}
	}
}

// holds says whether a certificate of a span, nil for none, is taken over.
func (m memory) holds(p *Packager, c *certificate.Certificate, s span, life time.Duration, now time.Time) bool {
	return c != nil && c.Length == s.length && c.ObjectLength == s.object && m.since(s, c, now) && (m.has(s, c) || !c.IssuedAt.Before(p.since)) &&
		c.NotAfter.Sub(now) > life/2 && p.genuine(c, s.name, m.entries, now)
}

// signAll fills the entries that are nil. A file that cannot be read, or changes meanwhile, leaves its own at that; the error is of the
// first.
func (pl *Plan) signAll(ctx context.Context) error {
	type place struct {
		span
		life  time.Duration
		entry *[]byte
		err   error
	}
	var unsigned []place
	for _, one := range pl.lists {
		for i := range one.spans {
			if one.entries[i] == nil {
				unsigned = append(unsigned, place{span: one.spans[i], life: one.life, entry: &one.entries[i]})
			}
		}
	}
	var next atomic.Int64
	work := func() {
		buffer := make([]byte, readSize)
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= len(unsigned) {
				return
			}
			u := &unsigned[i]
			*u.entry, u.err = pl.packager.sign(ctx, u.span, u.life, buffer)
		}
	}
	var done sync.WaitGroup
	for range min(pl.packager.Workers, len(unsigned)) {
		done.Go(work)
	}
	done.Wait()
	var first error
	others := 0
	for _, u := range unsigned {
		switch {
		case u.err != nil && first == nil:
			first = fmt.Errorf("segment %s: %w", u.name, u.err)
		case u.err != nil:
			others++
		}
	}
	if others > 0 {
		return fmt.Errorf("%w (and %d others)", first, others)
	}
	return first
}
