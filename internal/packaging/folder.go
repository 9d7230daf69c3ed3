package packaging

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
)

// fresh marks, after a dot and the name, a file that is being written; what a process that was killed left is removed after staleAfter.
const (
	fresh      = Suffix + ".new-"
	staleAfter = time.Minute
)

// IsPlaylist says whether a file is a playlist or an MPD, by its ending.
func IsPlaylist(file string) bool { return strings.EqualFold(path.Ext(file), ".m3u8") || isMPD(file) }

func isMPD(file string) bool { return strings.EqualFold(path.Ext(file), ".mpd") }

// folder is where the playlists are, and what is written beside them. Safe for concurrent use.
type folder struct {
	root  *os.Root
	now   func() time.Time
	parts bool         // certificates of parts are removed when they have ended
	swept atomic.Int64 // when it was walked last, Unix ms
}

// Temporary is a name, used once, under which a file is written beside the place that it is renamed to. Several programs may write into
// one folder, and in containers each of them is process 1.
func Temporary(file string) string {
	return path.Join(path.Dir(file), "."+path.Base(file)+fresh+strings.ToLower(rand.Text()[:8]))
}

// Playlists are the playlists below the folder, by the endings .m3u8 and .mpd, in lexical order. Folders that begin with a dot are
// left out. The error is of what could not be read, beside the others.
func (p *Packager) Playlists() ([]string, error) {
	here, err := p.folder.walk()
	return here.playlists, errors.Join(err, here.unread)
}

// found is what a folder has.
type found struct {
	playlists []string
	folders   map[string]time.Time // when they were modified before they were read
	unread    error                // of folders below it that cannot be read, and of what cannot be removed
}

// walk finds the playlists and the folders. It removes what packagers that were killed have left.
func (f *folder) walk() (found, error) {
	f.swept.Store(f.now().UnixMilli())
	here := found{folders: map[string]time.Time{}}
	var unread []error
	err := fs.WalkDir(f.root.FS(), ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && file != ".":
			// removed since its folder was read
		case err != nil && file != ".":
			unread = append(unread, err)
		case err != nil:
			return err
		case d.IsDir() && file != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir():
			if info, err := f.root.Stat(file); err == nil {
				here.folders[file] = info.ModTime()
			}
		case strings.Contains(d.Name(), fresh) && strings.HasPrefix(d.Name(), "."):
			unread = append(unread, f.tidy(file, d))
		case d.Type().IsRegular() && IsPlaylist(file):
			here.playlists = append(here.playlists, file)
		case d.Type().IsRegular() && f.parts && isOfPart(d.Name()):
			unread = append(unread, f.expire(file, d))
		}
		return nil
	})
	here.unread = errors.Join(unread...)
	return here, err
}

// sweep walks the folder if that was long ago: one that is pushed to is not walked otherwise.
func (f *folder) sweep() error {
	if f.now().Sub(time.UnixMilli(f.swept.Load())) <= certificate.PartLife {
		return nil
	}
	_, err := f.walk()
	return err
}

// tidy removes a list that no process finishes any more.
func (f *folder) tidy(file string, d fs.DirEntry) error {
	info, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && f.now().Sub(info.ModTime()) > staleAfter {
		err = f.remove(file)
	}
	return err
}

// expire removes a certificate of a part that has ended.
func (f *folder) expire(file string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil || f.now().Sub(info.ModTime()) <= certificate.PartLife || info.Size() > certificate.MaxSize {
		return nil // gone, or not yet, or something else
	}
	raw, err := f.root.ReadFile(file)
	if err != nil {
		return nil
	}
	if c, err := certificate.Parse(raw); err != nil || c.Alg != certificate.Packager {
		return nil
	}
	return f.remove(file)
}

// remove removes a file that may be gone.
func (f *folder) remove(file string) error {
	err := f.root.Remove(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// old is the list that a playlist has; nil where there is none.
func (p *Packager) old(file string) ([]byte, error) {
	info, err := p.Root.Stat(file + Suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > certificate.MaxListSize) {
		return nil, nil // it is no list; it is written anew
	}
	if err != nil {
		return nil, err
	}
	return p.Root.ReadFile(file + Suffix)
}

// write replaces a list as a whole, and says whether it is another one than before.
func (p *Packager) write(l List) (changed bool, err error) {
	file, list := l.File, l.Data
	old, err := p.old(file)
	if err != nil || old != nil && bytes.Equal(old, list) {
		return false, err
	}
	if err := p.folder.replace(file+Suffix, list, true); err != nil {
		return false, fmt.Errorf("certify %s: write the list: %w", file, err)
	}
	return true, nil
}

// replace writes a list or a certificate as a whole: a reader gets the old one or the new one. What has to outlive the machine is to be
// lasting.
func (f *folder) replace(file string, data []byte, lasting bool) error {
	temporary := Temporary(strings.TrimSuffix(file, Suffix))
	w, err := f.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nameless(err)
	}
	_, err = w.Write(data)
	if lasting {
		err = errors.Join(err, w.Sync())
	}
	if err = errors.Join(err, w.Close()); err == nil {
		err = f.root.Rename(temporary, file)
	}
	if err != nil {
		return errors.Join(nameless(err), nameless(f.root.Remove(temporary)))
	}
	return nil
}

// nameless is an error without the name of the file that was being written, which is another one with each attempt: a failure that stays
// is told once.
func nameless(err error) error {
	var renamed *os.LinkError
	var at *fs.PathError
	switch {
	case errors.As(err, &renamed):
		return fmt.Errorf("%s: %w", renamed.Op, renamed.Err)
	case errors.As(err, &at):
		return fmt.Errorf("%s: %w", at.Op, at.Err)
	}
	return err
}

// Certify writes the lists of one playlist, and says whether one is another than before.
func (p *Packager) Certify(ctx context.Context, file string) (plan *Plan, changed bool, err error) {
	text, err := p.text(file)
	if err != nil {
		return nil, false, fmt.Errorf("certify %s: %w", file, err)
	}
	return p.CertifyText(ctx, file, text)
}

// CertifyText is Certify for a playlist that is not written to its file yet.
func (p *Packager) CertifyText(ctx context.Context, file string, text []byte) (plan *Plan, changed bool, err error) {
	if plan, err = p.PlanText(file, text); err != nil {
		return nil, false, err
	}
	changed, err = p.Finish(ctx, plan)
	return plan, changed, err
}

// Finish signs what a plan says and writes its lists, and before them the certificates of parts, which viewers ask for at once. The lists
// have what could be read, also where it fails since something could not be.
func (p *Packager) Finish(ctx context.Context, plan *Plan) (changed bool, err error) {
	p.streams.note(p, plan.File, plan.chunked)
	broken := plan.finishParts(ctx)
	defer func() { err = errors.Join(err, broken) }()
	lists, err := plan.Sign(ctx)
	for _, one := range lists {
		other, unwritten := p.write(one)
		if changed, err = changed || other, errors.Join(err, unwritten); unwritten != nil {
			plan.unwritten()
		}
	}
	return changed, err
}

// Unlist removes the lists of a playlist that is gone, and the certificates of its parts.
func (p *Packager) Unlist(file string) error {
	left := errors.Join(p.dropParts(file), p.streams.drop(file))
	p.forget(file)
	names, err := fs.ReadDir(p.Root.FS(), path.Dir(file))
	for _, d := range names {
		if d.Name() != path.Base(file)+Suffix && !(isMPD(file) && strings.HasPrefix(d.Name(), path.Base(file)+".") && strings.HasSuffix(d.Name(), Suffix)) {
			continue
		}
		if gone := p.Root.Remove(path.Join(path.Dir(file), d.Name())); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return left
	}
	return errors.Join(left, err)
}
