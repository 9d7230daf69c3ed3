package load

import (
	"math"
	"runtime"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/leeway-video/leeway/internal/lab/armwire"
)

// TestAnArmsHistogramTakesNoMemoryOfAnotherShape: the shape is in the header, and some hundred bytes of an arm ask for 50 MB.
func TestAnArmsHistogramTakesNoMemoryOfAnotherShape(t *testing.T) {
	encoded := func(least, most int64, digits int) string {
		h := hdrhistogram.New(least, most, digits)
		if err := h.RecordValue(1000); err != nil {
			t.Fatal(err)
		}
		b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	d := NewDelays()
	if err := d.Add(armwire.Delays{Setup: encoded(1, longestDelay.Microseconds(), digits)}); err != nil || d.setup.TotalCount() != 1 {
		t.Fatalf("%v, %d delays", err, d.setup.TotalCount())
	}
	for name, text := range map[string]string{
		"wide":   encoded(1, math.MaxInt64, 5),
		"longer": encoded(1, 2*longestDelay.Microseconds(), digits),
		"coarse": encoded(1000, longestDelay.Microseconds(), digits),
		"none":   "AAAA", "no text": "%", "short": "HISTFAAAAAA=",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := d.Add(armwire.Delays{Chunk: text})
		runtime.ReadMemStats(&after)
		if err == nil || after.TotalAlloc-before.TotalAlloc > 1<<20 {
			t.Errorf("%s, %d bytes: %v, %d bytes were allocated", name, len(text), err, after.TotalAlloc-before.TotalAlloc)
		}
	}
}
