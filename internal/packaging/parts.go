package packaging

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// Which parts of low-latency playlists are signed (spec/packaging.md, "Parts"). Receivers take no others.
const (
	mostParts = 16      // of a playlist, the latest
	maxPart   = 3 << 20 // bytes
	maxNumber = 255     // of a part in its segment

	partRead = 4 * segment.PieceSize // bytes of a part that are read at a time
)

// latest are the parts of a playlist as a plan found them.
type latest struct {
	listed map[segment.Name]bool // all that the playlist lists
	spans  []partSpan            // the latest that the folder has
}

// partSpan is a part to sign, and its file as the plan found it.
type partSpan struct {
	span
	certificate string // its file
	info        fs.FileInfo
}

// signedPart is a part whose certificate was written, and the part's file as it was then.
type signedPart struct {
	certificate string
	info        fs.FileInfo
}

// holds says whether a part is still the one that was signed. An object that grows has what it had.
func (o signedPart) holds(s partSpan) bool {
	if s.grows {
		return os.SameFile(o.info, s.info) && o.info.Size() <= s.info.Size()
	}
	return o.info.Size() == s.info.Size() && o.info.ModTime().Equal(s.info.ModTime())
}

// listParts notes the parts that a playlist lists, and which of them are to have a certificate.
func (pl *Plan) listParts(media *playlist.Listed) {
	p := pl.packager
	if !p.Parts || !media.Live || media.Parts == nil {
		return
	}
	listed := media.Parts.Listed
	pl.latest.listed = make(map[segment.Name]bool, len(listed))
	for i, e := range listed {
		pl.latest.listed[e.Name] = true
		file, ok := p.file(e.Path)
		if !ok || i < len(listed)-mostParts || e.Part > maxNumber {
			continue
		}
		info, err := p.Root.Stat(file)
		switch {
		case err == nil && info.Mode().IsRegular():
			if s := partOf(e, file, info); s.length > 0 && s.length <= maxPart && s.object <= info.Size() {
				pl.latest.spans = append(pl.latest.spans, s)
			}
		case !e.Ranged: // an object that is pushed is there when all of it has come, long after its first part
			pl.Missing = append(pl.Missing, file)
		}
	}
}

func partOf(e playlist.PartEntry, file string, info fs.FileInfo) partSpan {
	s := partSpan{info: info, certificate: file + certificate.PartSuffix(e.Ranged, e.First, e.Last)}
	s.span = span{name: e.Name, file: file, length: info.Size(), object: info.Size(), modified: info.ModTime()}
	if e.Ranged {
		s.first, s.length, s.object, s.grows = e.First, e.Last-e.First+1, e.Last+1, true
	}
	return s
}

// finishParts writes the certificates of parts that have none yet, and removes those of parts that the playlist lists no more. A part that
// cannot be read, since it changes or is gone, is tried again with the next playlist.
func (pl *Plan) finishParts(ctx context.Context) error {
	p := pl.packager
	had := p.parts.of(pl.File)
	if len(had) == 0 && len(pl.latest.spans) == 0 {
		return nil
	}
	errs := []error{p.folder.sweep()}
	for name, one := range had {
		if !pl.latest.listed[name] {
			delete(had, name)
			errs = append(errs, p.folder.remove(one.certificate))
		}
	}
	var buffer []byte
	for _, s := range pl.latest.spans {
		one, was := had[s.name]
		if was && one.holds(s) {
			continue
		}
		if buffer == nil {
			buffer = make([]byte, partRead)
		}
		err := pl.signPart(ctx, s, buffer)
		if err == nil {
			had[s.name] = signedPart{s.certificate, s.info}
			continue
		}
		if delete(had, s.name); was {
			errs = append(errs, p.folder.remove(one.certificate))
		}
		if !errors.Is(err, errChanged) && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("certify %s: part %s: %w", pl.File, s.name, err))
		}
	}
	pl.Parts = len(had)
	p.parts.note(pl.File, had)
	return errors.Join(errs...)
}

func (pl *Plan) signPart(ctx context.Context, s partSpan, buffer []byte) error {
	c, err := pl.packager.issue(ctx, s.span, certificate.PartLife, buffer)
	if err != nil {
		return err
	}
	return pl.packager.folder.replace(s.certificate, c.Bytes(), false)
}

// dropParts removes the certificates of the parts of a playlist that is gone.
func (p *Packager) dropParts(file string) error {
	var errs []error
	for _, one := range p.parts.of(file) {
		errs = append(errs, p.folder.remove(one.certificate))
	}
	p.parts.note(file, nil)
	return errors.Join(errs...)
}

// signedParts are the parts whose certificates are there, by playlist.
type signedParts struct {
	mu  sync.Mutex
	all map[string]map[segment.Name]signedPart // guarded by mu
}

// of are those of a playlist, to be changed.
func (b *signedParts) of(file string) map[segment.Name]signedPart {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := maps.Clone(b.all[file])
	if all == nil {
		all = map[segment.Name]signedPart{}
	}
	return all
}

// note says what those of a playlist are now.
func (b *signedParts) note(file string, all map[segment.Name]signedPart) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(all) == 0 {
		delete(b.all, file)
		return
	}
	b.all[file] = all
}

// isOfPart says whether a file may be the certificate of a part, by its name: it is no list.
func isOfPart(name string) bool {
	of, is := strings.CutSuffix(name, Suffix)
	return is && !IsPlaylist(of) && !strings.Contains(strings.ToLower(path.Base(of)), ".mpd.")
}
