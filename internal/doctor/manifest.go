package doctor

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/wire/mpd"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

// manifest is what the manifest says, down to the segments of one rendition.
type manifest struct {
	answer
	dash       bool
	live       bool
	renditions int
	list       answer   // the playlist that names the segments; the manifest itself where it does
	segments   []object // of one rendition
	media      int      // how many of these are no initialization segments
	length     time.Duration
	indexed    bool // an index names segments, and is not read here
}

// object is a segment, or an initialization segment.
type object struct {
	url         string
	ranged      bool
	first, last int64
}

func checkManifest(ctx context.Context, e *examination) []Finding {
	at := e.cfg.Manifest
	if at == "" {
		return skipped("no manifest was given (leeway doctor https://…/master.m3u8)")
	}
	m := &manifest{answer: e.get(ctx, "manifest", at, maxManifest, 0, false)}
	if found := m.trouble(); found != nil {
		return found
	}
	if found := m.read(ctx, e); found != nil {
		return found
	}
	e.manifest = m
	kind := "HLS"
	if m.dash {
		kind = "DASH"
	}
	if m.live {
		kind += ", live"
	}
	return ok("%s, %s, %s listed", kind, counted(m.renditions, "rendition"), counted(len(m.segments), "segment"))
}

// counted is a number with its noun: "1 rendition", "2 renditions".
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// read follows a manifest to segments.
func (m *manifest) read(ctx context.Context, e *examination) []Finding {
	at, err := url.Parse(m.url)
	if err != nil {
		return fail("manifest-type", err.Error(), "correct the URL")
	}
	if isMPD(m.body) {
		return m.readMPD(at, e)
	}
	master, media, err := playlist.ReadFrom(playlist.Source{URL: at}, m.body)
	if err != nil || !strings.HasPrefix(strings.TrimLeft(string(m.body), "\ufeff \t\r\n"), "#EXTM3U") {
		return fail("manifest-type", fmt.Sprintf("%s is neither a playlist of HLS nor an MPD: it begins with %q, Content-Type %s",
			plainURL(m.asked), start(m.body), m.response.Header.Get("Content-Type")),
			"give the URL of a .m3u8 or .mpd file, as the player has it; if it is that, the origin sends another page instead")
	}
	m.renditions, m.list = 1, m.answer
	if master != nil {
		m.renditions = len(master.Variants)
		if m.renditions == 0 {
			return fail("manifest-empty", "the master playlist lists no renditions", "look at the packager's output")
		}
		m.list = e.get(ctx, "rendition", playlist.Resolve(at, master.Variants[0].URI), maxManifest, 0, false)
		if found := m.list.trouble(); found != nil {
			return found
		}
		if at, err = url.Parse(m.list.url); err == nil {
			_, media, err = playlist.ReadFrom(playlist.Source{URL: at, Imports: master.Variables}, m.list.body)
		}
		if err != nil || media == nil {
			return fail("rendition-type", plainURL(m.list.asked)+" is no media playlist", "correct the master playlist: its first rendition leads there")
		}
	}
	m.live = media.Live
	m.take(at, media)
	if len(m.segments) == 0 {
		return fail("manifest-empty", "no segments are listed", "look at the packager's output; a live stream may not have begun")
	}
	return nil
}

// isMPD says whether a text is an MPD, and not a page of HTML.
func isMPD(body []byte) bool {
	return mpd.Is(body) && strings.Contains(string(body[:min(len(body), 4096)]), "MPD")
}

func start(body []byte) string { return string(body[:min(len(body), 24)]) }

// take lists the segments of a media playlist.
func (m *manifest) take(at *url.URL, media *playlist.Media) {
	var init *playlist.Object
	add := func(o playlist.Object) {
		m.segments = append(m.segments, object{playlist.Resolve(at, o.URI), o.Length > 0, o.Offset, o.Offset + o.Length - 1})
	}
	for _, s := range media.Segments {
		if s.Init != nil && s.Init != init {
			init = s.Init
			add(*init)
		}
		if !s.Gap {
			add(s.Object)
			m.media++
			m.length += time.Duration(s.Duration * float64(time.Second))
		}
	}
}

func (m *manifest) readMPD(at *url.URL, e *examination) []Finding {
	doc, err := mpd.Read(m.body, at, e.cfg.Now())
	if err != nil {
		return fail("manifest-type", err.Error(), "spec/site.md says what is shared of DASH")
	}
	m.dash, m.live, m.renditions, m.list = true, doc.Live, len(doc.Representations), m.answer
	var refused error
	for _, r := range doc.Representations {
		if r.Refused != nil {
			refused = r.Refused
		}
		if len(m.segments) > 0 || r.Refused != nil {
			continue
		}
		for _, s := range r.Segments {
			m.segments = append(m.segments, object{s.URL.String(), s.Ranged, s.First, s.Last})
			if !s.Init {
				m.media++
				m.length += s.Duration
			}
		}
		for _, x := range r.Indexes {
			m.segments = append(m.segments, object{x.URL.String(), x.Ranged, x.First, x.Last})
			m.indexed = true
		}
	}
	if len(m.segments) == 0 {
		return fail("manifest-empty", fmt.Sprintf("no segments are listed (%v)", refused), "spec/site.md says what is shared of DASH")
	}
	return nil
}
