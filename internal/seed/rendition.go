package seed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

const (
	// reloadWait is how long the origin may keep a blocking reload, in durations of a segment, and leastWait the least of it.
	reloadWait = 3
	leastWait  = 5 * time.Second
	// mostBehind is how many parts are certified that the origin publishes at once. Older ones come too late for viewers.
	mostBehind = 4
	// leap is by how many segments the numbers may go on at once: a turn has 24 bits of them, and of two turns that are half of that apart
	// the first one is taken for the later (spec/parts.md, "Terms").
	leap = 1 << 23
)

// position is the number of a segment in its stream, and of a part in it.
type position struct {
	sequence int64
	part     int
}

func (p position) before(o position) bool {
	return p.sequence < o.sequence || p.sequence == o.sequence && p.part < o.part
}

// rendition is a low-latency playlist that is followed: it is asked for again as soon as it has come, and the request waits at the origin
// for the next part.
type rendition struct {
	*openStream

	known  *playlist.Parts // as it was last loaded; nil: not yet
	latest position        // of the latest part that was looked at
	target time.Duration   // of a segment
	hinted *ahead          // the next part, asked for before it is listed; nil: it is not
}

// ahead is a part that the origin was asked for: mostly before its playlist lists it.
type ahead struct {
	name   segment.Name
	cancel context.CancelFunc
	came   chan struct{} // closed when the answer is there
	got    *Fetched
	err    error
	question
}

// brought says whether the part has come.
func (a *ahead) brought() bool {
	select {
	case <-a.came:
		return a.err == nil
	default:
		return false
	}
}

// follow follows the stream until no viewer does.
func (r *rendition) follow() {
	site := r.sharing.title.site
	defer r.leave()
	defer r.cancel()
	ticks := time.NewTicker(decideEvery)
	defer ticks.Stop()
	for failures := 0; r.ctx.Err() == nil; {
		began := r.sharing.all.now()
		loaded, waits := make(chan error, 1), failures == 0
		if !r.sharing.all.tasks.begin(func() { loaded <- r.load(waits) }) {
			return
		}
		err := r.await(loaded, ticks)
		pause := time.Duration(0)
		var unpaid *unpaidError
		switch {
		case err != nil:
			pause = min(retryAfter<<min(failures, 4), retryAtMost)
			failures++
			if !errors.As(err, &unpaid) && r.ctx.Err() == nil { // a refusal is counted
				r.sharing.all.log.Warn("a low-latency playlist could not be followed", append([]any{"site", site.name, "playlist", r.path, "error", err}, hintOf(err)...)...)
			}
		case r.known != nil:
			failures = 0
			pause = max(0, r.known.Target/2-r.sharing.all.now().Sub(began)) // an origin that does not wait is not asked all the time
		}
		r.rest(pause, ticks)
	}
}

// await waits for a load, and looks after the trees meanwhile.
func (r *rendition) await(loaded <-chan error, ticks *time.Ticker) error {
	for {
		select {
		case err := <-loaded:
			return err
		case <-ticks.C:
			r.sharing.look()
		}
	}
}

// load asks for the playlist, and certifies what is new. It waits for the next part to be in it, unless a load before has failed: an origin
// refuses to wait for a part that is far ahead, which one is whose packager has begun anew, with lower numbers.
func (r *rendition) load(waits bool) error {
	v := r.sharing.payer(r.id, true) // else another viewer that has wanted the manifest would pay
	if v == nil {
		r.sharing.all.sink.Add(mPlaylistRefusals, 1, tollSession)
		return &unpaidError{tollSession}
	}
	ix := r.want(v.from)
	if ix == nil {
		return errors.New("there is no room for the playlists of the title")
	}
	path, within := r.path, leastWait
	if waits && r.known != nil {
		sign := "?"
		if strings.Contains(path, "?") {
			sign = "&"
		}
		path += fmt.Sprintf("%s_HLS_msn=%d&_HLS_part=%d", sign, r.known.NextSequence, r.known.NextPart)
		within = max(leastWait, reloadWait*r.target)
	}
	list, err := ix.reload(r.ctx, path, r.path, within)
	if err != nil {
		return err
	}
	if list == nil || list.Parts == nil || !list.Live {
		return fmt.Errorf("the playlist lists no parts any more")
	}
	if p := list.Parts; r.known != nil && ((position{p.NextSequence + 1, 0}).before(r.latest) || p.NextSequence-r.known.NextSequence >= leap) {
		r.sharing.restart(r.openStream)
		return errors.New("the playlist has begun anew")
	}
	first := r.known == nil
	r.known, r.target = list.Parts, list.Target
	r.take(first)
	r.hint(v)
	return nil
}

// take certifies the parts that are new. What was there when the seed began comes too late.
func (r *rendition) take(first bool) {
	var fresh []playlist.PartEntry
	latest := r.latest
	for _, p := range r.known.Listed {
		at := position{p.Sequence, p.Part}
		if first || r.latest.before(at) {
			fresh = append(fresh, p)
		}
		if latest.before(at) {
			latest = at
		}
	}
	r.latest = latest
	if late := len(fresh) - mostBehind; late > 0 && !first {
		r.sharing.all.sink.Add(mParts, float64(late), r.sharing.title.site.name, partLate)
		fresh = fresh[late:]
	}
	if first {
		return
	}
	if r.idle() {
		r.sharing.all.sink.Add(mParts, float64(len(fresh)), r.sharing.title.site.name, partIdle)
		return
	}
	listed := r.sharing.all.now()
	for _, p := range fresh {
		r.certify(p, listed)
	}
}

// certify fetches a part, if the hint has not brought it, signs it and tells it.
func (r *rendition) certify(p playlist.PartEntry, listed time.Time) {
	s := r.sharing
	turn, ok := parts.Turn(p.Sequence, p.Part)
	outcome := partFailed
	defer func() { s.all.sink.Add(mParts, 1, s.title.site.name, outcome) }()
	if !ok {
		return
	}
	h, err := r.sign(p.Entry, listed)
	var unpaid *unpaidError
	switch {
	case errors.As(err, &unpaid):
		outcome = partUnpaid
	case err != nil:
		s.all.log.Warn("a part is not certified", append([]any{"site", s.title.site.name, "playlist", r.path, "error", err}, hintOf(err)...)...)
	default:
		s.told(r.openStream, turn, h, true)
		outcome = partSigned
		s.all.sink.Observe(mPartLag, s.all.now().Sub(listed).Seconds(), s.title.site.name)
	}
}

// sign fetches a part and signs it, under the rules of segments.
func (r *rendition) sign(e playlist.Entry, listed time.Time) (*held, error) {
	s, site := r.sharing, r.sharing.title.site
	got, q, err := r.fetched(e, listed)
	if err != nil {
		return nil, err
	}
	s.all.supply.budgets.charge(q.payer.conn.payer(), len(got.Data))
	s.title.costs(len(got.Data))
	if e.Ranged {
		got.ObjectLength = e.Last + 1 // while the object grows it has no other
	}
	ref := &ref{id: segment.NewID(site.name, e.Name), seg: e, playlist: r.path, live: true}
	return s.all.supply.signPart(request{s.title, ref, q.payer.conn.payer()}, q.under, q.asked, got)
}

// fetched is a part: the hinted one, or what the origin is asked for now. Where the request for the hint hangs, the part is asked for as it is
// listed, half a part later, and what comes first is taken: what hangs would hold the parts behind it.
func (r *rendition) fetched(e playlist.Entry, listed time.Time) (*Fetched, question, error) {
	hint := &ahead{}
	if a := r.hinted; a != nil && a.name == e.Name {
		hint, r.hinted = a, nil
		defer hint.cancel()
		late := time.NewTimer(r.known.Target/2 - r.sharing.all.now().Sub(listed))
		defer late.Stop()
		select {
		case <-hint.came:
		case <-late.C:
		}
		if hint.brought() {
			return hint.got, hint.question, nil
		}
	}
	q := r.asks(r.sharing.payer(r.id, false), e.Name)
	if q.payer == nil {
		return nil, q, &unpaidError{tollSession}
	}
	a := r.begin(e, q, leastWait, r.sharing.title.site.fetch)
	if a == nil {
		return nil, q, errors.New("the seed ends")
	}
	defer a.cancel()
	select {
	case <-a.came:
	case <-hint.came:
		if hint.brought() {
			return hint.got, hint.question, nil
		}
		<-a.came
	}
	return a.got, a.question, a.err
}

// begin asks for a part; nil: the seed ends.
func (r *rendition) begin(e playlist.Entry, q question, within time.Duration, get func(context.Context, Fetch) (*Fetched, error)) *ahead {
	a := &ahead{name: e.Name, came: make(chan struct{}), question: q}
	ctx, cancel := context.WithTimeout(r.ctx, within)
	a.cancel = cancel
	if !r.sharing.all.tasks.begin(func() {
		defer close(a.came)
		a.got, a.err = get(ctx, partFetch(e))
	}) {
		cancel()
		return nil
	}
	return a
}

func partFetch(e playlist.Entry) Fetch {
	return Fetch{Path: e.Path, Ranged: e.Ranged, First: e.First, Last: e.Last, MaxBytes: parts.MaxPart, Shared: true, AnyLength: true}
}

// hint asks for the part that comes next before it is there: the origin keeps the request until it is.
func (r *rendition) hint(v *viewerLink) {
	h := r.known.Hint
	if h == nil || h.Name == "" || r.hinted != nil && r.hinted.name == h.Name || r.idle() {
		return
	}
	if n := len(r.known.Listed); n > 0 && r.known.Listed[n-1].Ranged && !h.Ranged {
		return // the first range of an object, whose hint says no end: all of the object comes with the last one
	}
	if r.hinted != nil {
		r.hinted.cancel() // the origin has published another one
	}
	r.hinted = r.begin(*h, r.asks(v, h.Name), max(leastWait, reloadWait*r.target), r.sharing.title.site.keep)
}
