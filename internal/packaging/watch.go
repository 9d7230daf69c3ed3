package packaging

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// Every is how often the playlists of a watched folder are looked at that list parts: an eighth of the shortest parts in use. The others,
// and the folders, are looked at every everySlow: a tenth of the shortest segments. everyFile is how often the files of a playlist are
// looked at which has not changed and whose files were all there: each look reads the playlist and its list, and a folder in which
// segments of many playlists come would have all of them read for each.
const (
	Every     = 25 * time.Millisecond
	everySlow = 4 * Every
	everyFile = 10 * time.Second
	// resolution is of the times of modification that file systems keep: some milliseconds to two seconds (FAT).
	resolution = 2 * time.Second
)

// watched is what is known of one playlist.
type watched struct {
	modified time.Time
	size     int64
	signed   time.Time // when its list was last made, by the wall clock
	life     time.Duration
	parts    bool   // it lists some
	touched  bool   // a file came, left or was replaced since its list was last made
	whole    bool   // all that it names was there then, and it names no more by itself
	failure  string // of the last attempt, told once
	waited   bool   // it imports variables, and the playlist that defines them may not have been read
}

// Watch writes the lists of the folder's playlists, again when a playlist changes, when a file came, left or was replaced, and when half
// of the certificates' life is over, until ctx ends. It looks at each tick. A file that leaves or is replaced while its playlist stays as it
// is counts within everyFile. report hears of each list that is another one than before, and of each failure, once while it stays.
func (p *Packager) Watch(ctx context.Context, ticks <-chan time.Time, report func(file string, plan *Plan, err error)) error {
	known := map[string]*watched{}
	var last walked
	failed := map[string]string{} // of streams of chunks, told once
	chunks := func(name string, err error) {
		if err != nil && failed[name] != err.Error() {
			failed[name] = err.Error()
			report(name, nil, err)
		}
	}
	var slow time.Time // when all was looked at last
	for at := p.Now(); ; {
		all, touched := at.Sub(slow) > everySlow-Every/2, false
		if all {
			slow = at
			var due bool
			if due, touched = last.due(&p.folder, at); due {
				here, err := p.folder.walk()
				if err != nil {
					return err
				}
				if failure := here.unread; failure != nil && (last.unread == nil || last.unread.Error() != failure.Error()) {
					report(".", nil, fmt.Errorf("certify: %w", failure))
				}
				last.found, last.at = here, at
				p.discover(known, here.playlists)
			}
		}
		for file, w := range known {
			if all || w.parts {
				p.look(ctx, file, w, touched, report)
			}
		}
		p.streams.grow(ctx, chunks)
		select {
		case <-ctx.Done():
			return nil
		case at = <-ticks:
		}
	}
}

// walked is the last walk of the folders.
type walked struct {
	found
	at    time.Time
	again bool // a change was the reason for it: another one, within the resolution of the folder's time, does not show
}

// due says whether the folders are to be walked, and whether files may have come or left since. What could not be read is tried again.
func (w *walked) due(f *folder, at time.Time) (due, touched bool) {
	changed := f.touched(w.folders)
	touched = changed || w.again && at.Sub(w.at) >= resolution
	if touched {
		w.again = changed
	}
	return touched || w.unread != nil && at.Sub(w.at) >= everyFile, touched
}

// touched says whether files came to or left one of the folders since it was read: its time of modification changes then. Without
// folders none was read yet.
func (f *folder) touched(folders map[string]time.Time) bool {
	for folder, modified := range folders {
		if info, err := f.root.Stat(folder); err != nil || !info.ModTime().Equal(modified) {
			return true
		}
	}
	return len(folders) == 0
}

// discover adds playlists that are new and forgets those that are gone.
func (p *Packager) discover(known map[string]*watched, files []string) {
	there := make(map[string]bool, len(files))
	for _, file := range files {
		there[file] = true
		if known[file] == nil {
			known[file] = &watched{}
		}
	}
	for file := range known {
		if !there[file] {
			delete(known, file)
			p.forget(file)
			_ = errors.Join(p.dropParts(file), p.streams.drop(file)) // what cannot be removed now is removed when it has ended
		}
	}
}

// look signs a playlist that has changed or is due, and one whose media may have.
func (p *Packager) look(ctx context.Context, file string, w *watched, touched bool, report func(string, *Plan, error)) {
	w.touched = w.touched || touched
	info, err := p.Root.Stat(file)
	if err != nil || ctx.Err() != nil {
		return // gone between two looks, or about to be replaced
	}
	other := !info.ModTime().Equal(w.modified) || info.Size() != w.size
	now := p.Now().Round(0) // certificates end by the wall clock, also where that is set
	since := now.Sub(w.signed)
	due := w.life > 0 && (since > w.life/2 || since < 0)
	files := w.touched && !w.whole || since >= everyFile && (w.touched || !w.whole) // a file may grow without a change of its folder
	if !other && !due && w.failure == "" && !files {
		return
	}
	plan, changed, err := p.Certify(ctx, file)
	if errors.Is(err, ErrMaster) {
		err = nil
	}
	if errors.Is(err, playlist.ErrVariables) && !w.waited {
		w.waited = true
		return
	}
	if err != nil {
		if w.failure != err.Error() && ctx.Err() == nil {
			w.failure = err.Error()
			report(file, nil, err)
		}
		return
	}
	*w = watched{modified: info.ModTime(), size: info.Size(), signed: p.Now().Round(0), whole: true}
	if plan != nil {
		w.life, w.parts = plan.life, len(plan.latest.listed) > 0
		w.whole = !w.parts && len(plan.Missing) == 0 && !plan.partly && !(plan.Live && isMPD(file))
	}
	if changed {
		report(file, plan, nil)
	}
}
