// Package packaging signs the segments of playlists where they are made: it writes a list of short certificates beside each
// playlist of a folder (spec/packaging.md). It reads and writes files; it knows no network.
package packaging

import (
	"bytes"
	"cmp"
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

// errNoFile is a pipe, a socket or a folder where a file should be: reading it may wait for ever.
var errNoFile = errors.New("it is no regular file")

// Settings say what is signed, by which key, under which names.
type Settings struct {
	Site    *site.Site
	Key     *ecdsa.PrivateKey
	Root    *os.Root      // the folder; nothing outside of it is read
	Path    string        // of the folder on the site, begins and ends with /
	Life    time.Duration // of the certificates of a playlist with an end; 0: DefaultLife
	Again   bool          // issue anew what was signed before the packager was made
	Parts   bool          // sign the parts of low-latency playlists, too: of a packager that goes on, and removes what ends
	Workers int           // 0: one
	Now     func() time.Time
}

// Packager signs the playlists of one folder. Safe for concurrent use.
type Packager struct {
	Settings
	keys     *certificate.KeySet
	read     atomic.Int64
	verified atomic.Int64 // signatures
	since    time.Time    // what was issued before is issued anew
	folder   folder
	parts    signedParts
	streams  streams
	imports  imports

	mu    sync.Mutex
	known map[string]memory // guarded by mu: what was signed or verified, by playlist
}

// imports are the variables that media playlists may import.
type imports struct {
	mu  sync.Mutex
	all map[string]playlist.Variables // guarded by mu: by the playlist's file; the variables are not changed
}

func (i *imports) of(file string) playlist.Variables {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.all[file]
}

// note says what a playlist may import; nil: nothing.
func (i *imports) note(file string, of playlist.Variables) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if of == nil {
		delete(i.all, file)
		return
	}
	i.all[file] = of
}

// memory is entries by name, of one key. It is replaced as a whole, never changed.
type memory struct {
	key       *ecdsa.PrivateKey
	entries   map[segment.Name]signed
	unwritten bool // a list does not have them all
}

// signed is an entry, and when its file was modified.
type signed struct {
	entry    []byte
	modified time.Time
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
	p := &Packager{Settings: s, keys: keys, known: map[string]memory{}, imports: imports{all: map[string]playlist.Variables{}}, parts: signedParts{all: map[string]map[segment.Name]signedPart{}}, streams: streams{all: map[string]map[string]*stream{}}}
	p.folder.root, p.folder.now, p.folder.parts = s.Root, s.Now, s.Parts
	if s.Again {
		p.since = s.Now().Truncate(time.Millisecond)
	}
	return p, nil
}

// Read is how many bytes of media were read.
func (p *Packager) Read() int64 { return p.read.Load() }

// genuine says whether an entry is the packager's own, and holds now: the clock may have been set back since it was issued. The signature
// of one that was found to be so before is not verified again.
func (p *Packager) genuine(c *certificate.Certificate, name segment.Name, known map[segment.Name]signed, now time.Time) bool {
	if bytes.Equal(known[name].entry, c.Bytes()) {
		return !c.IssuedAt.After(now.Add(certificate.MaxSkew))
	}
	p.verified.Add(1)
	return p.keys.Verify(c, p.Site.Name(), name, now, nil) == nil
}

func (p *Packager) text(file string) ([]byte, error) {
	info, err := p.Root.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	if info.Size() > playlist.MaxBytes {
		return nil, fmt.Errorf("it has %d bytes; a playlist has at most %d", info.Size(), playlist.MaxBytes)
	}
	return p.Root.ReadFile(file)
}

// spans lists what a list is about, in the playlist's order. A segment that stands in it twice is signed once.
func (p *Packager) spans(media *playlist.Listed, pl *Plan, one *sheet) {
	files := map[string]fs.FileInfo{} // nil: it is not there
	read := map[string]int64{}
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
		pl.partly = pl.partly || len(parts) == 0
		for _, part := range parts {
			read[file] += part.length
		}
		if len(parts) == 0 || read[file] > mostReads*info.Size() {
			pl.Unsaid++ // ranges that overlap without end: each would be read and hashed
			continue
		}
		one.spans = append(one.spans, parts...)
	}
}

// mostReads is how often a file is read for one playlist, at most: no packager's ranges overlap, but for an initialization segment's.
const mostReads = 2

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
