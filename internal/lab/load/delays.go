package load

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"io"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/leeway-video/leeway/internal/lab/armwire"
)

const (
	longestDelay = time.Minute // of a histogram
	digits       = 3           // that a histogram is exact to
)

// Delays are the histograms of arms, merged: percentiles of several arms are never averaged.
type Delays struct {
	mu                  sync.Mutex
	setup, chunk, start *hdrhistogram.Histogram // guarded by mu; µs
	join                *hdrhistogram.Histogram // guarded by mu; µs, of this controller
}

// NewDelays makes empty ones.
func NewDelays() *Delays {
	h := func() *hdrhistogram.Histogram { return hdrhistogram.New(1, longestDelay.Microseconds(), digits) }
	return &Delays{setup: h(), chunk: h(), start: h(), join: h()}
}

// Hear takes the events of an arm (Arm.Listen); others than statistics are passed over.
func (d *Delays) Hear(_ *Arm, m armwire.Message) {
	if m.Kind != armwire.Statistics {
		return
	}
	if b, bad := armwire.DecodeBody[armwire.StatisticsBody](m); bad == nil {
		_ = d.Add(b.Delays)
	}
}

// Add merges what an arm has sent. A histogram of another shape than ours is an error: an arm that sent it lies, or is of another version.
func (d *Delays) Add(b armwire.Delays) *armwire.Error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for text, into := range map[*string]*hdrhistogram.Histogram{&b.Setup: d.setup, &b.Chunk: d.chunk, &b.Start: d.start} {
		if *text == "" {
			continue
		}
		h, err := decodeHistogram(*text)
		if err != nil {
			return err
		}
		into.Merge(h)
	}
	return nil
}

// addChunks merges the delays of chunks of others, which nothing is added to any more.
func (d *Delays) addChunks(others *Delays) {
	others.mu.Lock()
	defer others.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.chunk.Merge(others.chunk)
}

// mostEncoded bounds a histogram that an arm sends, bytes: the shape that is spoken of never comes near.
const mostEncoded = 128 << 10

func decodeHistogram(text string) (*hdrhistogram.Histogram, *armwire.Error) {
	if len(text) > mostEncoded {
		return nil, armwire.Fail(armwire.BadField, "a histogram of %d bytes", len(text))
	}
	least, most, figures, err := shapeOf(text)
	if err != nil {
		return nil, armwire.Fail(armwire.BadField, "histogram: %v", err)
	}
	if least != 1 || most != longestDelay.Microseconds() || figures != digits {
		return nil, armwire.Fail(armwire.BadField, "a histogram from %d to %d of %d digits", least, most, figures)
	}
	h, err := hdrhistogram.Decode([]byte(text))
	if err != nil {
		return nil, armwire.Fail(armwire.BadField, "histogram: %v", err)
	}
	return h, nil
}

// shapeOf reads the header of a histogram (V2, compressed): its range and its digits. They say how much memory the whole takes, up to 50 MB.
func shapeOf(text string) (least, most int64, figures int32, err error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return 0, 0, 0, err
	}
	z, err := zlib.NewReader(bytes.NewReader(raw[min(8, len(raw)):])) // behind the cookie and the length
	if err != nil {
		return 0, 0, 0, err
	}
	var header [32]byte // cookie, length, offset, digits, least, most
	if _, err := io.ReadFull(z, header[:]); err != nil {
		return 0, 0, 0, err
	}
	return int64(binary.BigEndian.Uint64(header[16:])), int64(binary.BigEndian.Uint64(header[24:])), int32(binary.BigEndian.Uint32(header[12:])), nil
}

func (d *Delays) at(h *hdrhistogram.Histogram, percentile float64) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(h.ValueAtQuantile(percentile)) * time.Microsecond
}

// Setup is a percentile, 0–100, of how long connections took to come up.
func (d *Delays) Setup(percentile float64) time.Duration { return d.at(d.setup, percentile) }

// Chunk is a percentile of how late chunks came, from when they were due.
func (d *Delays) Chunk(percentile float64) time.Duration { return d.at(d.chunk, percentile) }

// Start is a percentile of the startup delays of viewers.
func (d *Delays) Start(percentile float64) time.Duration { return d.at(d.start, percentile) }

// joined counts how long a client took to connect, from when it was due.
func (d *Delays) joined(took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.join.RecordValue(min(max(took.Microseconds(), 0), longestDelay.Microseconds())) // within the histogram's range
}

// Join is a percentile of how long clients took to connect, from when they were due.
func (d *Delays) Join(percentile float64) time.Duration { return d.at(d.join, percentile) }

// any says whether there is a join, a chunk or a startup delay.
func (d *Delays) any() (join, chunk, start bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.join.TotalCount() > 0, d.chunk.TotalCount() > 0, d.start.TotalCount() > 0
}
