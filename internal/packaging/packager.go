// Package packaging signs the segments of playlists where they are made: it writes a list of short certificates beside each
// playlist of a folder (spec/packaging.md). It reads and writes files; it knows no network.
package packaging

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// Suffix is what a playlist's path has behind it in the path of its list.
const Suffix = certificate.ListSuffix

// DefaultLife is how long the certificates of a playlist with an end live; liveGrace is how much longer than the playlist's
// duration those of one without.
const (
	DefaultLife = 30 * 24 * time.Hour
	liveGrace   = 10 * time.Minute
)

// ErrMaster is a playlist that lists other playlists. It has no list.
var ErrMaster = errors.New("it lists other playlists and no segments")

// Settings say what is signed, by which key, under which names.
type Settings struct {
	Site    *site.Site
	Key     *ecdsa.PrivateKey
	Root    *os.Root      // the folder; nothing outside of it is read
	Path    string        // of the folder on the site, begins and ends with /
	Life    time.Duration // of the certificates of a playlist with an end; 0: DefaultLife
	Again   bool          // issue anew what is signed already
	Workers int           // 0: one
	Now     func() time.Time
}

// Packager signs the playlists of one folder. Safe for concurrent use.
type Packager struct {
	Settings
	keys     *certificate.KeySet
	read     atomic.Int64
	verified atomic.Int64 // signatures

	mu    sync.Mutex
	known map[string]memory // guarded by mu: what was signed or verified, by playlist
}

// memory is entries by name, of one key. It is replaced as a whole, never changed.
type memory struct {
	key     *ecdsa.PrivateKey
	entries map[segment.Name][]byte
}

// New checks settings.
func New(s Settings) (*Packager, error) {
	s.Life, s.Workers = cmp.Or(s.Life, DefaultLife), max(s.Workers, 1)
	switch {
	case s.Life < time.Minute || s.Life > certificate.MaxPackaged:
		return nil, fmt.Errorf("certificates that live %v: they live from a minute to 31 days", s.Life)
	case !strings.HasPrefix(s.Path, "/") || !strings.HasSuffix(s.Path, "/"):
		return nil, fmt.Errorf("path %q: the folder's path on the site begins and ends with /", s.Path)
	}
	point, err := s.Key.PublicKey.Bytes()
	if err != nil {
		return nil, fmt.Errorf("packager's key: %w", err)
	}
	id := certificate.KeyIDOf(&s.Key.PublicKey)
	keys, err := certificate.NewKeySet(certificate.VerifyKey{KeyID: id, Key: point, Sites: []string{s.Site.Name()}, Alg: certificate.Packager})
	if err != nil {
		return nil, fmt.Errorf("packager's key: %w", err)
	}
	return &Packager{Settings: s, keys: keys, known: map[string]memory{}}, nil
}

// Read is how many bytes of media were read.
func (p *Packager) Read() int64 { return p.read.Load() }

// Plan says what a playlist's list will have, and what of it has to be signed.
type Plan struct {
	File    string // of the playlist
	Live    bool
	Kept    int      // segments of the list before, unchanged
	Unsaid  int      // segments left out: of other sites or folders, or objects that cannot be shared
	Missing []string // files that are not there
	Bytes   int64    // to be read

	packager *Packager
	life     time.Duration
	spans    []span
	entries  [][]byte // nil: to be signed
}

// Segments is how many segments the list will have.
func (pl *Plan) Segments() int { return len(pl.spans) }

// Plan reads a media playlist, a file below the folder. old is the list before, which may be nil. It fails with ErrMaster for
// a playlist that names others.
func (p *Packager) Plan(file string, old []byte) (*Plan, error) {
	text, err := p.text(file)
	if err != nil {
		return nil, fmt.Errorf("certify %s: %w", file, err)
	}
	return p.PlanText(file, text, old)
}

// PlanText is Plan for a playlist that is not written to its file yet.
func (p *Packager) PlanText(file string, text, old []byte) (*Plan, error) {
	at := (&url.URL{Path: p.Path + file}).EscapedPath()
	_, media, err := playlist.List(p.Site, at, text)
	if err == nil && media == nil {
		err = ErrMaster
	}
	if err != nil {
		return nil, fmt.Errorf("certify %s: %w", file, err)
	}
	pl := &Plan{File: file, Live: media.Live, packager: p, life: p.Life}
	if media.Live {
		pl.life = min(media.Duration+liveGrace, certificate.MaxPackaged)
	}
	p.spans(media, pl)
	pl.keep(old)
	return pl, nil
}

// Sign signs what has to be, and returns the list.
func (pl *Plan) Sign(ctx context.Context) ([]byte, error) {
	err := pl.signAll(ctx)
	var list []byte
	if err == nil {
		list, err = certificate.EncodeList(pl.entries)
	}
	if err != nil {
		return nil, fmt.Errorf("certify %s: %w", pl.File, err)
	}
	pl.remember()
	return list, nil
}

// remember spares the next plan of the playlist the signatures of what stays as it is.
func (pl *Plan) remember() {
	p := pl.packager
	m := memory{p.Key, make(map[segment.Name][]byte, len(pl.spans))}
	for i, s := range pl.spans {
		m.entries[s.name] = pl.entries[i]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[pl.File] = m
}

func (p *Packager) recall(file string) map[segment.Name][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.known[file]; m.key == p.Key {
		return m.entries
	}
	return nil
}

// forget drops what is remembered of a playlist that is gone.
func (p *Packager) forget(file string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, file)
}

// genuine says whether an entry is the packager's own. One that was found to be so before is not verified again.
func (p *Packager) genuine(c *certificate.Certificate, name segment.Name, known map[segment.Name][]byte, now time.Time) bool {
	if bytes.Equal(known[name], c.Bytes()) {
		return true
	}
	p.verified.Add(1)
	return p.keys.Verify(c, p.Site.Name(), name, now, nil) == nil
}

func (p *Packager) text(file string) ([]byte, error) {
	info, err := p.Root.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > playlist.MaxBytes {
		return nil, fmt.Errorf("it has %d bytes; a playlist has at most %d", info.Size(), playlist.MaxBytes)
	}
	return p.Root.ReadFile(file)
}

// spans lists what the plan is about, in the playlist's order. A segment that stands in it twice is signed once.
func (p *Packager) spans(media *playlist.Listed, pl *Plan) {
	files := map[string]fs.FileInfo{} // nil: it is not there
	seen := map[segment.Name]bool{}
	for _, s := range media.Segments {
		file, ok := p.file(s.Path)
		if !ok {
			pl.Unsaid++
		}
		if !ok || seen[s.Name] {
			continue
		}
		seen[s.Name] = true
		info, known := files[file]
		if !known {
			if found, err := p.Root.Stat(file); err == nil && found.Mode().IsRegular() {
				info = found
			}
			files[file] = info
		}
		if info == nil {
			pl.Missing = append(pl.Missing, file)
			continue
		}
		parts := cut(s, file, info)
		if len(parts) == 0 {
			pl.Unsaid++
		}
		pl.spans = append(pl.spans, parts...)
	}
}

// cut is the segment, or the virtual segments of an object that is too long; nothing where it cannot be shared.
func cut(s playlist.Entry, file string, info fs.FileInfo) []span {
	size := info.Size()
	part := func(name segment.Name, first, length int64) span {
		return span{name: name, file: file, first: first, length: length, object: size, modified: info.ModTime()}
	}
	switch {
	case s.Ranged && s.Last < size && s.Last-s.First < segment.MaxLength:
		return []span{part(s.Name, s.First, s.Last-s.First+1)}
	case s.Ranged || size == 0:
		return nil
	case size <= segment.MaxLength:
		return []span{part(s.Name, 0, size)}
	}
	var all []span
	for _, v := range segment.Virtual(size) {
		all = append(all, part(segment.RangeName(string(s.Name), v.First, v.Last), v.First, v.Len()))
	}
	return all
}

// file is the file of a path of the site.
func (p *Packager) file(path string) (string, bool) {
	path, _, _ = strings.Cut(path, "?")
	path, err := url.PathUnescape(path)
	if err != nil {
		return "", false
	}
	file, ok := strings.CutPrefix(path, p.Path)
	return file, ok && fs.ValidPath(file) && file != "."
}

// keep takes over the entries of the list before that still hold.
func (pl *Plan) keep(old []byte) {
	p := pl.packager
	pl.entries = make([][]byte, len(pl.spans))
	had := map[segment.Name]*certificate.Certificate{}
	if list, err := certificate.ParseList(old); err == nil && !p.Again {
		for _, c := range list {
			had[c.Name] = c
		}
	}
	known, now := p.recall(pl.File), p.Now()
	for i, s := range pl.spans {
		c := had[s.name]
		if c != nil && c.Length == s.length && c.ObjectLength == s.object && s.modified.Before(c.IssuedAt) &&
			c.NotAfter.Sub(now) > pl.life/2 && p.genuine(c, s.name, known, now) {
			pl.entries[i] = c.Bytes()
			pl.Kept++
		} else {
			pl.Bytes += s.length
		}
	}
}

// signAll fills the entries that are nil.
func (pl *Plan) signAll(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	work := func() {
		buffer := make([]byte, readSize)
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= len(pl.spans) {
				return
			}
			if pl.entries[i] != nil {
				continue
			}
			e, err := pl.packager.sign(ctx, pl.spans[i], pl.life, buffer)
			if err != nil {
				cancel(fmt.Errorf("segment %s: %w", pl.spans[i].name, err))
				return
			}
			pl.entries[i] = e
		}
	}
	var done sync.WaitGroup
	for range pl.packager.Workers {
		done.Go(work)
	}
	done.Wait()
	return context.Cause(ctx)
}
