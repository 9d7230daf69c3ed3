package seed

import (
	"errors"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/wire/mpd"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// represented takes in the representations of an MPD: at once those that it lists itself, and so many at a time of those whose segments
// indexes name, as they come. partly is why one of the indexes could not be had; err, why none could.
func (ix *index) represented(m *playlist.Renditions, atATime int) (target time.Duration, partly, err error) {
	if m.Refused != nil && ix.isFirst() {
		ix.catalog.log.Warn("some representations are not certified", "site", ix.site.name, "manifest", ix.manifest, "error", m.Refused)
	}
	i := &indexed{index: ix}
	for _, rep := range m.Representations {
		if len(rep.Indexes) > 0 {
			i.reps = append(i.reps, rep)
		} else if err := i.take(rep); err != nil {
			return 0, nil, err
		}
	}
	var done sync.WaitGroup
	for range min(atATime, len(i.reps)) {
		done.Go(func() {
			for rep := i.next(); rep != nil; rep = i.next() {
				i.complete(rep)
			}
		})
	}
	done.Wait()
	for _, rep := range m.Representations {
		if d := paceOf(&rep.Listed); d > 0 && (target == 0 || d < target) {
			target = d
		}
	}
	if len(i.errs) > 0 && len(i.errs) >= len(m.Representations) {
		return target, nil, errors.Join(i.errs...)
	}
	for _, one := range i.errs {
		if partly == nil || timedOut(one) {
			partly = one
		}
	}
	return target, partly, nil
}

// indexed are the representations of an MPD whose indexes are to be fetched.
type indexed struct {
	index *index

	mu     sync.Mutex
	reps   []*playlist.Representation // guarded by mu: whose turn has not come
	errs   []error                    // guarded by mu: of indexes that could not be had
	unpaid bool                       // guarded by mu: one was not paid for, and the others would go the same way
}

// next is the representation whose turn it is; nil: there is no more.
func (i *indexed) next() (rep *playlist.Representation) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.reps) > 0 {
		rep, i.reps = i.reps[0], i.reps[1:]
	}
	return rep
}

func (i *indexed) failed(err error) {
	var unpaid *unpaidError
	i.mu.Lock()
	defer i.mu.Unlock()
	i.errs = append(i.errs, err)
	i.unpaid = i.unpaid || errors.As(err, &unpaid)
}

func (i *indexed) isPaid() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return !i.unpaid
}

// take takes in what is listed of a representation, by its name: players do not name it by what a redirect of the MPD led to.
func (i *indexed) take(rep *playlist.Representation) error {
	return i.index.takeIn(mpd.Name(i.index.manifest, rep.ID), &rep.Listed)
}

// complete has the indexes of a representation come, and takes in what it lists and what they name.
func (i *indexed) complete(rep *playlist.Representation) {
	for _, x := range rep.Indexes {
		if !i.isPaid() {
			break
		}
		if err := i.fetch(rep, x); err != nil {
			i.failed(err)
		}
	}
	if err := i.take(rep); err != nil {
		i.failed(err)
	}
	i.index.told()
}

// fetch loads the ranges that the segment index of a representation names, when it is paid for like a playlist.
func (i *indexed) fetch(rep *playlist.Representation, x playlist.Index) error {
	f := Fetch{Path: x.Path, Ranged: true, First: x.First, Last: x.Last, MaxBytes: playlist.MaxIndex, AnyLength: true}
	return i.index.paid(i.index.ctx, f, fetchTimeout, func(got *Fetched) error { return rep.Take(x, got.Data) })
}
