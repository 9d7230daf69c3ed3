package schedule

// Bounds of prefetch (spec/schedule.md, "Prefetch").
const (
	defaultWaste  = 16 << 20 // bytes
	firstWaste    = 1 << 20  // bytes that may be lost before anything was received
	aheadUs       = 60_000_000
	leastDuration = 3 // durations that the player must have
)

// MostAhead is how many segments behind the asked one Prefetch looks at.
const MostAhead = 32

// Ahead is what Prefetch sees.
type Ahead struct {
	Allowed    bool  `json:"allowed"`     // by the site
	WasteBytes int64 `json:"waste_bytes"` // that a viewer may fetch ahead and never play; 0 is the default
	// Role is full, leech, relay-only or off.
	Role       string         `json:"role"`
	Off        bool           `json:"off"` // peer delivery is off
	Live       bool           `json:"live"`
	Battery    bool           `json:"battery"`
	BufferedUs int64          `json:"buffered_us"` // that the player has ahead of the playhead
	Received   int64          `json:"received"`    // bytes in all
	Wasted     int64          `json:"wasted"`      // bytes of them that were fetched ahead and lost
	Segments   []AheadSegment `json:"segments"`    // behind the last asked one
}

// AheadSegment is one that the player has not asked for.
type AheadSegment struct {
	DurationUs int64 `json:"duration_us"`
	Bytes      int64 `json:"bytes"` // less what is in hand and was not fetched ahead
}

// Prefetch says how many of the segments behind the last asked one are fetched ahead.
func Prefetch(in Ahead) (n int) {
	if !in.Possible() || len(in.Segments) == 0 {
		return 0
	}
	if in.BufferedUs < leastDuration*in.Segments[0].DurationUs {
		return 0
	}
	left, time := in.budget()-in.Wasted, int64(0)
	for _, s := range in.Segments {
		if n == MostAhead || time > aheadUs || s.Bytes > left {
			break
		}
		left -= s.Bytes
		time += s.DurationUs
		n++
	}
	return n
}

// Possible says whether anything may be fetched ahead, however full the player's buffer (rule 1).
func (in Ahead) Possible() bool { return in.Allowed && in.Role == "full" && !in.Off && !in.Live }

// budget is how many bytes may be lost in all.
func (in Ahead) budget() int64 {
	b := in.WasteBytes
	if b == 0 {
		b = defaultWaste
	}
	b = min(b, firstWaste+in.Received/10)
	if in.Battery {
		b /= 4
	}
	return b
}
