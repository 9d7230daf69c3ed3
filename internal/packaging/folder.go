package packaging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
)

// Fresh marks, after a dot and the name, a file that is being written; what a process that was killed left is removed after staleAfter.
const (
	Fresh      = Suffix + ".new-"
	staleAfter = time.Minute
)

// IsPlaylist says whether a file is a playlist or an MPD, by its ending.
func IsPlaylist(file string) bool { return strings.EqualFold(path.Ext(file), ".m3u8") || isMPD(file) }

func isMPD(file string) bool { return strings.EqualFold(path.Ext(file), ".mpd") }

// Playlists are the playlists below the folder, by the endings .m3u8 and .mpd, in lexical order. Folders that begin with a dot are
// left out.
func (p *Packager) Playlists() ([]string, error) {
	files, _, err := p.walk()
	return files, err
}

// walk finds the playlists, and the times at which the folders were modified before they were read.
func (p *Packager) walk() (files []string, folders map[string]time.Time, err error) {
	folders = map[string]time.Time{}
	err = fs.WalkDir(p.Root.FS(), ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && file != ".":
			return nil // removed since its folder was read
		case err != nil:
			return err
		case d.IsDir() && file != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir():
			info, err := p.Root.Stat(file)
			if err == nil {
				folders[file] = info.ModTime()
			}
			return nil
		case strings.Contains(d.Name(), Fresh) && strings.HasPrefix(d.Name(), "."):
			return p.tidy(file, d)
		case d.Type().IsRegular() && IsPlaylist(file):
			files = append(files, file)
		case d.Type().IsRegular() && p.Parts && isOfPart(d.Name()):
			return p.expire(file, d)
		}
		return nil
	})
	return files, folders, err
}

// tidy removes a list that no process finishes any more.
func (p *Packager) tidy(file string, d fs.DirEntry) error {
	info, err := d.Info()
	if err == nil && p.Now().Sub(info.ModTime()) > staleAfter {
		err = p.Root.Remove(file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Old is the list that a playlist has; nil where there is none.
func (p *Packager) Old(file string) ([]byte, error) {
	info, err := p.Root.Stat(file + Suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && info.Size() > certificate.MaxListSize {
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
	old, err := p.Old(file)
	if err != nil || old != nil && bytes.Equal(old, list) {
		return false, err
	}
	if err := p.replace(file+Suffix, list, true); err != nil {
		return false, fmt.Errorf("certify %s: write the list: %w", file, err)
	}
	return true, nil
}

// replace writes a list or a certificate as a whole: a reader gets the old one or the new one. What has to outlive the machine is to be
// lasting.
func (p *Packager) replace(file string, data []byte, lasting bool) error {
	base := strings.TrimSuffix(path.Base(file), Suffix)
	temporary := path.Join(path.Dir(file), fmt.Sprintf(".%s%s%d-%d", base, Fresh, os.Getpid(), p.fresh.Add(1)))
	f, err := p.Root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if lasting {
		err = errors.Join(err, f.Sync())
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = p.Root.Rename(temporary, file)
	}
	if err != nil {
		return errors.Join(err, p.Root.Remove(temporary))
	}
	return nil
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

// Finish signs what a plan says and writes its lists, and before them the certificates of parts, which viewers ask for at once.
func (p *Packager) Finish(ctx context.Context, plan *Plan) (changed bool, err error) {
	broken := plan.finishParts(ctx)
	defer func() { err = errors.Join(err, broken) }()
	lists, err := plan.Sign(ctx)
	for _, one := range lists {
		if err == nil {
			var other bool
			other, err = p.write(one)
			changed = changed || other
		}
	}
	return changed, err
}

// Unlist removes the lists of a playlist that is gone, and the certificates of its parts.
func (p *Packager) Unlist(file string) error {
	left := p.dropParts(file)
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
