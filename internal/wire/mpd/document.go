package mpd

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
)

// document is an MPD as it is written, as far as it is read.
type document struct {
	XMLName  xml.Name
	Type     string    `xml:"type,attr"`
	Start    string    `xml:"availabilityStartTime,attr"`
	Duration string    `xml:"mediaPresentationDuration,attr"`
	Window   string    `xml:"timeShiftBufferDepth,attr"`
	Update   string    `xml:"minimumUpdatePeriod,attr"`
	Delay    string    `xml:"suggestedPresentationDelay,attr"`
	Location []string  `xml:"Location"`
	BaseURL  []baseURL `xml:"BaseURL"`
	Periods  []period  `xml:"Period"`

	Latencies []latency `xml:"ServiceDescription>Latency"`
}

type latency struct {
	Target string `xml:"target,attr"` // ms
}

type period struct {
	Href     string    `xml:"href,attr"`
	Start    string    `xml:"start,attr"`
	Duration string    `xml:"duration,attr"`
	BaseURL  []baseURL `xml:"BaseURL"`
	Sets     []set     `xml:"AdaptationSet"`
	addressed
}

type set struct {
	Href            string           `xml:"href,attr"`
	ContentType     string           `xml:"contentType,attr"`
	MimeType        string           `xml:"mimeType,attr"`
	BaseURL         []baseURL        `xml:"BaseURL"`
	Representations []representation `xml:"Representation"`
	addressed
}

type representation struct {
	ID        string    `xml:"id,attr"`
	MimeType  string    `xml:"mimeType,attr"`
	Bandwidth int64     `xml:"bandwidth,attr"`
	BaseURL   []baseURL `xml:"BaseURL"`
	addressed
}

type baseURL struct {
	Text string `xml:",chardata"`
	availability
}

// availability is when segments can be asked for, as one level says it.
type availability struct {
	Sooner   string `xml:"availabilityTimeOffset,attr"`
	Complete string `xml:"availabilityTimeComplete,attr"`
}

// addressed is how segments are named at one level. What is said below wins over what is said above.
type addressed struct {
	Template *addressing `xml:"SegmentTemplate"`
	List     *addressing `xml:"SegmentList"`
	Base     *addressing `xml:"SegmentBase"`
}

// addressing holds what the three ways to name segments may say.
type addressing struct {
	Href        string       `xml:"href,attr"`
	Timescale   *uint64      `xml:"timescale,attr"`
	Offset      *uint64      `xml:"presentationTimeOffset,attr"`
	Duration    *uint64      `xml:"duration,attr"`
	StartNumber *uint64      `xml:"startNumber,attr"`
	EndNumber   *uint64      `xml:"endNumber,attr"`
	IndexRange  string       `xml:"indexRange,attr"`
	Media       string       `xml:"media,attr"`
	InitMedia   string       `xml:"initialization,attr"`
	Init        *source      `xml:"Initialization"`
	Timeline    *timeline    `xml:"SegmentTimeline"`
	URLs        []segmentURL `xml:"SegmentURL"`
	availability
}

type source struct {
	URL   string `xml:"sourceURL,attr"`
	Range string `xml:"range,attr"`
}

type segmentURL struct {
	Media string `xml:"media,attr"`
	Range string `xml:"mediaRange,attr"`
}

type timeline struct {
	Runs []run `xml:"S"`
}

// run is a segment, and as many more of the same duration behind it.
type run struct {
	Time     *uint64 `xml:"t,attr"`
	Number   *uint64 `xml:"n,attr"`
	Duration uint64  `xml:"d,attr"`
	Repeat   int64   `xml:"r,attr"` // negative: up to the next run, or the end
}

// over fills what one level does not say with what the level above does.
func (a *addressing) over(above *addressing) *addressing {
	if a == nil || above == nil {
		if a == nil {
			return above
		}
		return a
	}
	out := *a
	or(&out.Timescale, above.Timescale)
	or(&out.Offset, above.Offset)
	or(&out.Duration, above.Duration)
	or(&out.StartNumber, above.StartNumber)
	or(&out.EndNumber, above.EndNumber)
	or(&out.Init, above.Init)
	or(&out.Timeline, above.Timeline)
	for _, text := range []struct {
		of    *string
		above string
	}{{&out.Href, above.Href}, {&out.Sooner, above.Sooner}, {&out.Complete, above.Complete}, {&out.IndexRange, above.IndexRange}, {&out.Media, above.Media}, {&out.InitMedia, above.InitMedia}} {
		if *text.of == "" {
			*text.of = text.above
		}
	}
	if len(out.URLs) == 0 {
		out.URLs = above.URLs
	}
	return &out
}

func or[T any](v **T, above *T) {
	if *v == nil {
		*v = above
	}
}

// over takes from above what is of a kind that the level itself uses, and all where it uses none.
func (a addressed) over(above addressed) addressed {
	if a.Template != nil || a.List != nil || a.Base != nil {
		if a.Template == nil {
			above.Template = nil
		}
		if a.List == nil {
			above.List = nil
		}
		if a.Base == nil {
			above.Base = nil
		}
	}
	return addressed{a.Template.over(above.Template), a.List.over(above.List), a.Base.over(above.Base)}
}

// guarded hands tokens on within the bounds. A document type is refused, since it is what entities are declared in.
type guarded struct {
	from  *xml.Decoder
	depth int
}

func (g *guarded) Token() (xml.Token, error) {
	t, err := g.from.RawToken()
	switch t.(type) {
	case xml.StartElement:
		if g.depth++; g.depth > MaxDepth {
			return nil, refuse(TooLarge, "elements are nested more than %d deep", MaxDepth)
		}
	case xml.EndElement:
		g.depth--
	case xml.Directive:
		return nil, refuse(DocType, "a document type is not read")
	}
	return t, err
}

func parse(data []byte) (*document, error) {
	if n := bytes.Count(data, []byte("<")); n > MaxTags {
		return nil, refuse(TooLarge, "%d tags; at most %d", n, MaxTags)
	}
	d := &document{}
	err := xml.NewTokenDecoder(&guarded{from: xml.NewDecoder(bytes.NewReader(data))}).Decode(d)
	var refused *Error
	switch {
	case errors.As(err, &refused):
		return nil, refused
	case errors.Is(err, io.EOF):
		return nil, refuse(Malformed, "it has no element")
	case err != nil:
		return nil, refuse(Malformed, "%v", err)
	case d.XMLName.Local != "MPD":
		return nil, refuse(Malformed, "the element is %.32q and not MPD", d.XMLName.Local)
	case len(d.Periods) > MaxPeriods:
		return nil, refuse(TooLarge, "%d periods; at most %d", len(d.Periods), MaxPeriods)
	}
	return d, nil
}
