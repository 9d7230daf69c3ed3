package mpd

import (
	"math"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxSeconds = 9e9 // of a duration; 285 years, which a time.Duration can hold
	maxOffset  = 1<<53 - 1
)

var durations = regexp.MustCompile(`^P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d*)?|\.\d+)S)?)?$`)

// units are the seconds of the parts of a duration; years and months are what players take them for.
var units = []float64{365 * 86400, 30 * 86400, 86400, 3600, 60}

// durationOf reads a duration; has is false where none is written.
func durationOf(text string) (d time.Duration, has bool, err error) {
	if text = strings.TrimSpace(text); text == "" {
		return 0, false, nil
	}
	m := durations.FindStringSubmatch(text)
	if m == nil || text == "P" || strings.HasSuffix(text, "T") {
		return 0, false, refuse(Malformed, "%.32q is no duration", text)
	}
	seconds := 0.0
	for i, unit := range units {
		if m[i+1] != "" {
			n, _ := strconv.ParseFloat(m[i+1], 64)
			seconds += n * unit
		}
	}
	whole, fraction, _ := strings.Cut(m[6], ".")
	if whole != "" {
		n, _ := strconv.ParseFloat(whole, 64)
		seconds += n
	}
	if seconds > maxSeconds {
		return 0, false, refuse(Malformed, "%.32q is too long a duration", text)
	}
	// The fraction on its own: a float64 of nanoseconds since 1970 would not be exact.
	nanos, _ := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	return time.Duration(seconds)*time.Second + time.Duration(nanos), true, nil
}

// timeOf reads a point in time. Without a zone it is UTC.
func timeOf(text string) (time.Time, error) {
	text = strings.TrimSpace(text)
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, refuse(Malformed, "%.40q is no point in time", text)
}

// rangeOf reads "first-last".
func rangeOf(text string) (first, last int64, err error) {
	a, b, ok := strings.Cut(strings.TrimSpace(text), "-")
	first, err1 := strconv.ParseInt(a, 10, 64)
	last, err2 := strconv.ParseInt(b, 10, 64)
	if !ok || err1 != nil || err2 != nil || first < 0 || last < first || last > maxOffset {
		return 0, 0, refuse(Malformed, "%.48q is no byte range", text)
	}
	return first, last, nil
}

// ticks are the ticks of a duration, rounded up; span the duration of ticks.
func ticks(d time.Duration, timescale uint64) uint64 {
	if d <= 0 {
		return 0
	}
	return scaled(uint64(d), timescale, uint64(time.Second), true)
}

func span(n, timescale uint64) time.Duration {
	return time.Duration(min(scaled(n, uint64(time.Second), timescale, false), math.MaxInt64))
}

// scaled is x·by/per, the largest number where it is larger.
func scaled(x, by, per uint64, up bool) uint64 {
	high, low := bits.Mul64(x, by)
	if high >= per {
		return math.MaxUint64
	}
	q, rest := bits.Div64(high, low, per)
	if up && rest > 0 && q < math.MaxUint64 {
		q++
	}
	return q
}

// values are what the identifiers of a template stand for.
type values struct {
	id        string
	bandwidth int64
	number    uint64
	time      uint64
}

// part is text, or an identifier with the least number of digits.
type part struct {
	text  string
	what  byte // 0: text; I, B, N, T
	width int
}

// template is a parsed one.
type template []part

// identifiers are those of the standard, with the letter by which a part has them.
var identifiers = map[string]byte{"RepresentationID": 'I', "Bandwidth": 'B', "Number": 'N', "Time": 'T'}

const maxWidth = 20 // digits that an identifier is filled up to: as many as the largest number has

// templateOf parses a template. Two dollars in a row are one.
func templateOf(text string) (template, error) {
	if len(text) > maxReference {
		return nil, refuse(TooLarge, "a template of %d bytes; at most %d", len(text), maxReference)
	}
	var t template
	pieces := strings.Split(text, "$")
	if len(pieces)%2 == 0 {
		return nil, refuse(Template, "%.64q has a dollar too few", text)
	}
	for i, piece := range pieces {
		switch {
		case i%2 == 0:
			t = append(t, part{text: piece})
		case piece == "":
			t = append(t, part{text: "$"})
		default:
			name, format, has := strings.Cut(piece, "%0")
			p := part{what: identifiers[name], width: 1}
			digits, ok := strings.CutSuffix(format, "d")
			if has {
				p.width, _ = strconv.Atoi(digits)
			}
			if p.what == 0 || has && (!ok || p.what == 'I' || p.width < 1 || p.width > maxWidth) {
				return nil, refuse(Template, "$%.32s$ is not known", piece)
			}
			t = append(t, p)
		}
	}
	return t, nil
}

// uses says whether an identifier is in the template.
func (t template) uses(what byte) bool {
	return slices.ContainsFunc(t, func(p part) bool { return p.what == what })
}

// fill writes the reference for some values; ok is false where it would be too long.
func (t template) fill(v values) (text string, ok bool) {
	b := make([]byte, 0, 64)
	for _, p := range t {
		n := v.number
		switch p.what {
		case 0:
			b = append(b, p.text...)
		case 'I':
			b = append(b, v.id...)
		case 'B':
			n = uint64(max(v.bandwidth, 0))
			fallthrough
		default:
			if p.what == 'T' {
				n = v.time
			}
			digits := strconv.FormatUint(n, 10)
			for range p.width - len(digits) {
				b = append(b, '0')
			}
			b = append(b, digits...)
		}
		if len(b) > maxReference {
			return "", false
		}
	}
	return string(b), true
}
