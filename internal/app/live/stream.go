package live

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/wire/cmaf"
)

// DASHName is the MPD of a stream in parts, beside the master playlist. Its segments are those of HLS.
const DASHName = "manifest.mpd"

// stream is what the renditions of a clock have in common.
type stream struct {
	clock Clock
	to    Target
	news  chan struct{} // there is something to publish; closed when there will be no more

	mu       sync.Mutex
	begun    time.Time         // guarded by mu: when its first sample was shown; zero: none has come
	number   int64             // guarded by mu: of the first segment
	codecs   map[string]string // guarded by mu: by rendition
	there    int               // guarded by mu: renditions that have a playlist
	complete map[int64]int     // guarded by mu: by number, how many renditions have the segment; those that all have are forgotten
}

// begin is when the stream began, and the number of its first segment. The first part has just come, at the end of what it shows: how long
// encoding took cannot be told. The numbers of a stream that is started again are others.
func (s *stream) begin(rendition string, header []byte, first cmaf.Chunk) (time.Time, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codecs[rendition] = codecsOf(header)
	if s.begun.IsZero() {
		s.begun = time.Now().Add(-first.Start - first.Duration)
		s.number = s.begun.Unix()
	}
	return s.begun, s.number
}

// codecsOf what the encoder's header is of (RFC 6381): the profile, compatibility and level of the picture are in its configuration record.
func codecsOf(header []byte) string {
	const sound = "mp4a.40.2"
	_, record, found := bytes.Cut(header, []byte("avcC"))
	if !found || len(record) < 4 {
		return sound
	}
	return fmt.Sprintf("avc1.%x,%s", record[1:4], sound)
}

// playable says that a rendition has its playlist.
func (s *stream) playable() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.there++; s.there == len(s.clock.Renditions) {
		s.tell()
	}
}

// ended says that a rendition has a segment.
func (s *stream) ended(number int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.complete[number]++; s.complete[number] == len(s.clock.Renditions) {
		delete(s.complete, number)
		s.tell()
	}
}

// tell has publish publish. The caller holds mu.
func (s *stream) tell() {
	select {
	case s.news <- struct{}{}:
	default: // it will find this, too
	}
}

// publish publishes the MPD, anew with each segment that all renditions have, since its lists are signed then; and behind the first the
// master playlist. The renditions do not wait for it: a receiver waits for segments that the MPD names by the clock, and that are late.
func (s *stream) publish(ctx context.Context) error {
	told := false
	for range s.news {
		if err := s.to.put(ctx, DASHName, s.mpd(time.Now())); err != nil {
			return err
		}
		if told {
			continue
		}
		told = true
		if err := s.to.put(ctx, MasterName, s.master()); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) master() []byte {
	var b strings.Builder
	b.WriteString("#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-INDEPENDENT-SEGMENTS\n")
	for _, r := range s.clock.Renditions {
		fmt.Fprintf(&b, "#EXT-X-STREAM-INF:BANDWIDTH=%d,RESOLUTION=%dx%d,FRAME-RATE=%d.000,NAME=\"%s\"\n%s/index.m3u8\n",
			r.peak(), r.width(), r.Height, s.clock.FPS, r.Name, r.Name)
	}
	return []byte(b.String())
}

const dateTime = "2006-01-02T15:04:05.000Z"

// mpd is the stream as low-latency DASH: a segment can be asked for when its first part is there. dash.js is as far behind the clock as
// Latency says. Shaka begins a part and suggestedPresentationDelay behind it, and then plays slower until it is as much further behind as
// Latency says, less half a second. The stream does not begin at the time 0: there Chromium plays before Shaka has sought, which Shaka then
// waits for as long as it plays.
func (s *stream) mpd(now time.Time) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clock
	segment, part := c.Segment.Seconds(), c.Part.Seconds()
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="utf-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-live:2011" type="dynamic" availabilityStartTime="%s" publishTime="%s" timeShiftBufferDepth="PT%gS" suggestedPresentationDelay="PT%gS" maxSegmentDuration="PT%gS" minBufferTime="PT%gS">
  <ServiceDescription id="0">
    <Latency target="%.0f"/>
    <PlaybackRate min="0.95" max="1.05"/>
  </ServiceDescription>
  <Period id="0" start="PT%gS">
    <AdaptationSet id="0" contentType="video" mimeType="video/mp4" segmentAlignment="true" startWithSAP="1">
      <SegmentTemplate timescale="1000" duration="%d" startNumber="%d" availabilityTimeOffset="%g" availabilityTimeComplete="false" initialization="$RepresentationID$/%s" media="$RepresentationID$/%s"/>
`,
		s.begun.Add(-c.Segment).UTC().Format(dateTime), now.UTC().Format(dateTime), segment*float64(c.window()), 2*part, segment, part,
		c.holdBack()*1000, segment, c.Segment.Milliseconds(), s.number, segment-part, headerName(s.number), "live-$Number$.m4s")
	for _, r := range c.Renditions {
		fmt.Fprintf(&b, "      <Representation id=%q codecs=%q bandwidth=\"%d\" width=\"%d\" height=\"%d\" frameRate=\"%d\"/>\n",
			r.Name, s.codecs[r.Name], r.peak(), r.width(), r.Height, c.FPS)
	}
	fmt.Fprintf(&b, "    </AdaptationSet>\n  </Period>\n  <UTCTiming schemeIdUri=\"urn:mpeg:dash:utc:http-xsdate:2014\" value=%q/>\n</MPD>\n", clockName)
	return []byte(b.String())
}

// clockName is where the origin says the time of day (origin.ClockName).
const clockName = "time"

func headerName(number int64) string { return fmt.Sprintf("header-%d.mp4", number) }

// partTarget is the length of the longest part, seconds.
func (c Clock) partTarget() float64 { return math.Ceil((c.Part+soundFrame).Seconds()*100) / 100 }

// holdBack is how far behind the end players are to stay, seconds.
func (c Clock) holdBack() float64 { return 3 * c.partTarget() }

// peak is the bit rate of picture and sound at most.
func (r Rendition) peak() int { return r.Video*11/10 + r.Audio }

func (r Rendition) width() int { return (r.Height*16/9 + 1) / 2 * 2 }
