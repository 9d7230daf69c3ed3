// Package mpd reads the manifests of DASH (MPD, ISO/IEC 23009-1) for seeds and packagers: it finds out which resources, or ranges of
// them, a player asks for (spec/site.md, "What a manifest lists").
package mpd

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Bounds of what one MPD may cause (spec/budgets.md). Its reader bounds its bytes.
const (
	MaxTags            = 262144   // opening and closing ones
	MaxDepth           = 24       // of elements
	MaxPeriods         = 1024     // further ones are refused
	MaxRepresentations = 256      // by ID; further ones are left out
	MaxIndexes         = 256      // segment indexes of all representations together
	MaxSegments        = 65536    // of all representations together; as many periods of them
	MaxURLs            = 16 << 20 // bytes of the URLs of all segments
	MaxLive            = 1024     // segments of a representation of a live MPD in one period: the newest
	maxReference       = 2048     // bytes of one reference
	maxRuns            = 1 << 20  // runs of timelines, counted for each representation
)

// Code says why an MPD, or one of its representations, is not listed.
type Code string

// The codes.
const (
	Malformed  Code = "malformed"   // it is not XML, or a value is not what it has to be
	DocType    Code = "doctype"     // it declares entities, or might
	TooLarge   Code = "too-large"   // it has, or stands for, more than one of the bounds
	Remote     Code = "remote"      // a part of it is at another URL (xlink:href)
	NoDuration Code = "no-duration" // how many segments there are cannot be known
	Template   Code = "template"    // a template with an identifier or a width that is not known
	NoIndex    Code = "no-index"    // segments that nothing names: no template, no list, and no index of ISO base media
)

// Error is why an MPD or a representation is refused.
type Error struct {
	Code   Code
	Detail string
}

func (e *Error) Error() string { return fmt.Sprintf("MPD: %s: %s", e.Code, e.Detail) }

func refuse(c Code, format string, args ...any) *Error {
	return &Error{c, fmt.Sprintf(format, args...)}
}

// Manifest is what an MPD lists at some time.
type Manifest struct {
	Live            bool // more may come
	Representations []*Representation
	Updating
	Refused *Error // of periods and adaptation sets that are at another URL; nil: there are none
}

// Representation is one rendition of picture or sound. Those of several periods with the same ID are one.
type Representation struct {
	ID        string
	Type      string // video or audio
	Bandwidth int64  // bits/s
	Segments  []Segment
	Indexes   []Index       // what names further segments, behind those
	Target    time.Duration // longest segment that is told of; of those that an index names it is not
	Chunks    []*Chunks     // of the period that is now and the next one, where segments can be asked for while they are made
	Periods   []InPeriod    // of which something may be listed, in order
	Refused   *Error        // of a period of which nothing is listed, or whose chunks are not
}

// Object is a resource or a range of one.
type Object struct {
	URL         *url.URL
	Absolute    bool // a host is written in the manifest, and not only in its own URL
	Ranged      bool
	First, Last int64 // of a range, both inclusive
}

// Segment is one entry, an initialization segment before the first one that needs it.
type Segment struct {
	Object
	Init     bool          // it is an initialization segment
	Start    time.Duration // in the presentation, whose zero is that of the first period; of a live one its availabilityStartTime
	Duration time.Duration // 0: of an initialization segment, or not told
}

// Index is a range of an object with a segment index (sidx box), which names ranges of the same object.
type Index struct {
	Object
	zero time.Duration // where a segment with the time 0 is in the presentation
}

// Document is an MPD that was found at a URL, parsed.
type Document struct {
	at *url.URL
	as *document
}

// Read parses an MPD that was found at a URL, and lists it.
func Read(data []byte, at *url.URL, now time.Time) (*Manifest, error) {
	d, err := Parse(data, at)
	if err != nil {
		return nil, err
	}
	return d.List(now)
}

// Parse parses an MPD that was found at a URL.
func Parse(data []byte, at *url.URL) (*Document, error) {
	d, err := parse(data)
	if err != nil {
		return nil, err
	}
	return &Document{at, d}, nil
}

// List is what it lists, a live one as of now. It may be listed any number of times.
func (d *Document) List(now time.Time) (*Manifest, error) {
	live := d.as.Type == "dynamic"
	r := &reader{now: now, live: live, byID: map[string]*Representation{}, out: &Manifest{Live: live}}
	if err := r.document(d.as, base{url: d.at}); err != nil {
		return nil, err
	}
	r.out.Updating = updatingOf(d.as, d.at, r.start)
	if len(r.out.Representations) == 0 && r.out.Refused != nil {
		return nil, r.out.Refused
	}
	return r.out, nil
}

// Is says whether a text may be an MPD and is no playlist of HLS.
func Is(data []byte) bool {
	text := strings.TrimLeft(string(data[:min(len(data), 64)]), "\ufeff \t\r\n")
	return strings.HasPrefix(text, "<")
}

// Name is the name of a representation of a manifest, which is a path or a URL: the manifest's path with a dot and the ID behind it.
// Each byte of the ID but A–Z a–z 0–9 - _ . ! * ' ( ) is spelled as ~ and two upper-case hexadecimal digits.
func Name(manifest, id string) string {
	path, query, has := strings.Cut(manifest, "?")
	if has {
		query = "?" + query
	}
	const digits = "0123456789ABCDEF"
	b := append(make([]byte, 0, len(manifest)+1+3*len(id)), path...)
	b = append(b, '.')
	for i := range len(id) {
		c := id[i]
		if c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("-_.!*'()", c) >= 0 {
			b = append(b, c)
		} else {
			b = append(b, '~', digits[c>>4], digits[c&15])
		}
	}
	return string(append(b, query...))
}
