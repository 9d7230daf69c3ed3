package mpd

import (
	"errors"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
)

// reader turns a document into what it lists.
type reader struct {
	now      time.Time
	live     bool
	start    time.Time     // of the whole, where live
	window   time.Duration // how far back a live one reaches; 0: to its start
	byID     map[string]*Representation
	segments int // of all representations
	periods  int // of all representations
	urls     int // their bytes
	indexes  int // of all representations
	runs     int // of timelines that were read, for one representation after the other
	out      *Manifest
}

// base is what references are relative to.
type base struct {
	url      *url.URL
	absolute bool
	sooner   sooner
}

// below is the base with the first BaseURL of a level. Further ones are for when it fails, and name the same.
func (b base) below(refs []baseURL) (base, error) {
	if len(refs) == 0 {
		return b, nil
	}
	b.sooner = b.sooner.and(refs[0].availability)
	return b.resolve(refs[0].Text)
}

func (b base) resolve(ref string) (base, error) {
	ref = strings.TrimSpace(ref)
	if len(ref) > maxReference {
		return b, refuse(TooLarge, "a reference of %d bytes; at most %d", len(ref), maxReference)
	}
	u, err := url.Parse(ref)
	if err != nil {
		return b, refuse(Malformed, "%.64q is no URL", ref)
	}
	abs := b.url.ResolveReference(u)
	abs.Fragment = ""
	return base{abs, b.absolute || u.IsAbs() || u.Host != "", b.sooner}, nil
}

// stretch is when a period starts in the presentation, and how long it is.
type stretch struct {
	start, duration time.Duration
	ends            bool // the duration is known
	early           bool // of a live one, it is announced: when it starts is not said yet
	period, set     int  // its number, and that of the adaptation set of it that is read
}

// resolveToZero stands for the URL of what is not there any more.
const resolveToZero = "urn:mpeg:dash:resolve-to-zero:2013"

func (r *reader) document(d *document, at base) error {
	if r.live {
		var err error
		if r.start, err = timeOf(d.Start); err != nil {
			return err
		}
		if r.window, _, err = durationOf(d.Window); err != nil {
			return err
		}
	}
	at, err := at.below(d.BaseURL)
	if err != nil {
		return err
	}
	d.Periods = slices.DeleteFunc(d.Periods, func(p period) bool { return p.Href == resolveToZero })
	stretches, err := stretches(d, r.live)
	if err != nil {
		return err
	}
	for i := range d.Periods {
		if stretches[i].early {
			continue
		}
		stretches[i].period = i
		if err := r.period(&d.Periods[i], at, stretches[i]); err != nil {
			return err
		}
	}
	return nil
}

// stretches are when the periods start and end.
func stretches(d *document, live bool) ([]stretch, error) {
	all := make([]stretch, len(d.Periods))
	whole, hasWhole, err := durationOf(d.Duration)
	if err != nil {
		return nil, err
	}
	var last *stretch // of those before that is not early
	for i, p := range d.Periods {
		s := &all[i]
		start, has, err := durationOf(p.Start)
		if err != nil {
			return nil, err
		}
		if s.duration, s.ends, err = durationOf(p.Duration); err != nil {
			return nil, err
		}
		switch {
		case has:
			s.start = start
		case i > 0 && all[i-1].ends && !all[i-1].early:
			s.start = all[i-1].start + all[i-1].duration
		case i > 0 && live:
			s.early = true
			continue
		case i > 0:
			return nil, refuse(NoDuration, "it is not said when period %d starts", i)
		}
		if last != nil && !last.ends {
			last.duration, last.ends = max(s.start-last.start, 0), true
		}
		last = s
	}
	if last != nil && !last.ends && hasWhole {
		last.duration, last.ends = max(whole-last.start, 0), true
	}
	return all, nil
}

func (r *reader) period(p *period, at base, s stretch) error {
	if p.Href != "" {
		r.out.Refused = refuse(Remote, "a period is at another URL")
		return nil
	}
	at, err := at.below(p.BaseURL)
	if err != nil {
		return err
	}
	for i := range p.Sets {
		one := &p.Sets[i]
		if one.Href != "" {
			if one.Href != resolveToZero {
				r.out.Refused = refuse(Remote, "an adaptation set is at another URL")
			}
			continue
		}
		within, err := at.below(one.BaseURL)
		if err != nil {
			return err
		}
		s.set = i
		for j := range one.Representations {
			if err := r.representation(&one.Representations[j], one, within, one.over(p.addressed), s); err != nil {
				return err
			}
		}
	}
	return nil
}

// kind is video or audio, empty for anything else.
func kind(rep *representation, of *set) string {
	text := rep.MimeType
	if text == "" {
		text = of.MimeType
	}
	for _, t := range []string{"video", "audio"} {
		if of.ContentType == t || strings.HasPrefix(text, t+"/") {
			return t
		}
	}
	return ""
}

// representation adds one period of a representation. What is wrong with it alone stays with it.
func (r *reader) representation(rep *representation, of *set, at base, above addressed, s stretch) error {
	kind := kind(rep, of)
	out := r.byID[rep.ID]
	if kind == "" || out == nil && len(r.byID) >= MaxRepresentations {
		return nil
	}
	if out == nil {
		out = &Representation{ID: rep.ID, Type: kind}
		r.byID[rep.ID] = out
		r.out.Representations = append(r.out.Representations, out)
	}
	out.Bandwidth = max(out.Bandwidth, rep.Bandwidth)
	at, err := at.below(rep.BaseURL)
	if err == nil {
		a := rep.over(above)
		w := &writer{reader: r, out: out, at: at, values: values{id: rep.ID, bandwidth: rep.Bandwidth}, stretch: s}
		segments, indexes, chunks := len(out.Segments), len(out.Indexes), len(out.Chunks)
		if err = w.write(a, strings.HasSuffix(rep.MimeType+of.MimeType, "webm")); err == nil {
			out.Periods = append(out.Periods, w.inPeriod(segments, indexes, chunks))
			if r.periods++; r.periods > MaxSegments {
				err = refuse(TooLarge, "more than %d periods of representations", MaxSegments)
			}
		}
	}
	var refused *Error
	if errors.As(err, &refused) && refused.Code != TooLarge {
		out.Refused = refused
		return nil
	}
	return err
}

// writer adds the segments of one representation in one period.
type writer struct {
	*reader
	out     *Representation
	at      base
	values  values
	stretch stretch
}

func (w *writer) write(a addressed, webm bool) error {
	for _, one := range []*addressing{a.Template, a.List, a.Base} {
		if one != nil && one.Href != "" {
			return refuse(Remote, "a list of segments is at another URL")
		}
	}
	switch {
	case a.Template != nil && a.Template.Media != "":
		return w.template(a.Template)
	case a.List != nil && len(a.List.URLs) > 0:
		return w.list(a.List)
	case a.Base != nil && a.Base.IndexRange != "" && !webm:
		return w.indexed(a.Base)
	}
	return refuse(NoIndex, "the segments of %.64q are not named", w.values.id)
}

// add adds an object, by a reference that may be empty, and a range that may be.
func (w *writer) add(ref, bytes string, s Segment) (err error) {
	if s.Object, err = w.object(ref, bytes); err != nil {
		return err
	}
	w.segments++
	w.urls += len(s.URL.Path) + len(s.URL.RawQuery)
	if w.segments > MaxSegments {
		return refuse(TooLarge, "more than %d segments", MaxSegments)
	}
	if w.urls > MaxURLs {
		return refuse(TooLarge, "URLs of more than %d bytes", MaxURLs)
	}
	w.out.Segments = append(w.out.Segments, s)
	w.out.Target = max(w.out.Target, s.Duration)
	return nil
}

func (w *writer) object(ref, bytes string) (o Object, err error) {
	to, err := w.at.resolve(ref)
	if err != nil {
		return o, err
	}
	o = Object{URL: to.url, Absolute: to.absolute}
	if bytes != "" {
		o.Ranged = true
		o.First, o.Last, err = rangeOf(bytes)
	}
	return o, err
}

// initialization adds the initialization segment, if there is one.
func (w *writer) initialization(a *addressing) error {
	if a.Init != nil {
		return w.add(a.Init.URL, a.Init.Range, Segment{Init: true, Start: w.stretch.start})
	}
	if a.InitMedia == "" {
		return nil
	}
	t, err := templateOf(a.InitMedia)
	if err == nil && (t.uses('N') || t.uses('T')) {
		err = refuse(Template, "%.64q is of an initialization segment, which has no number and no time", a.InitMedia)
	}
	if err != nil {
		return err
	}
	return w.filled(t, 0, 0, Segment{Init: true, Start: w.stretch.start})
}

func (w *writer) filled(t template, number, at uint64, s Segment) error {
	v := w.values
	v.number, v.time = number, at
	ref, ok := t.fill(v)
	if !ok {
		return refuse(TooLarge, "a reference of more than %d bytes", maxReference)
	}
	return w.add(ref, "", s)
}

// valueOf is what an attribute says, or what it is without being said.
func valueOf(v *uint64, unsaid uint64) uint64 {
	if v != nil {
		return *v
	}
	return unsaid
}

func (w *writer) template(a *addressing) error {
	t, err := templateOf(a.Media)
	if err != nil {
		return err
	}
	if !t.uses('N') && !t.uses('T') {
		return refuse(Template, "%.64q is the same for each segment", a.Media)
	}
	scale := valueOf(a.Timescale, 1)
	all, err := w.series(a, scale, math.MaxUint64)
	if err != nil {
		return err
	}
	if err := w.initialization(a); err != nil {
		return err
	}
	w.chunks(a, t, scale)
	for _, s := range all {
		d := span(s.duration, scale)
		for i := range s.count {
			at := s.time + i*s.duration
			if err := w.filled(t, s.number+i, at, Segment{Start: w.placed(a, at, scale), Duration: d}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) list(a *addressing) error {
	scale := valueOf(a.Timescale, 1)
	all, err := w.series(a, scale, uint64(len(a.URLs)))
	if err != nil {
		return err
	}
	if err := w.initialization(a); err != nil {
		return err
	}
	var longest time.Duration
	for _, s := range all {
		longest = max(longest, span(s.duration, scale))
	}
	starts := w.starts(a, all, scale)
	for i, u := range a.URLs {
		if err := w.add(u.Media, u.Range, Segment{Start: starts[i], Duration: longest}); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) indexed(a *addressing) error {
	if a.Init != nil {
		if err := w.add(a.Init.URL, a.Init.Range, Segment{Init: true, Start: w.stretch.start}); err != nil {
			return err
		}
	}
	if w.indexes++; w.indexes > MaxIndexes {
		return refuse(TooLarge, "more than %d segment indexes", MaxIndexes)
	}
	o, err := w.object("", a.IndexRange)
	if err == nil {
		w.out.Indexes = append(w.out.Indexes, Index{o, w.placed(a, 0, max(1, valueOf(a.Timescale, 1)))})
	}
	return err
}
