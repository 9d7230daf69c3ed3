package load

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Units of figures.
var figureUnits = map[string]string{
	"join_p50": "s", "join_p99": "s", "chunk_p50": "s", "chunk_p99": "s", "startup_p50": "s", "startup_p99": "s", "stall_ratio": "",
	"failed_ratio": "", "lost_ratio": "", "held_ratio": "", "delivered_ratio": "", "packet_loss": "", "nacks": "", "offload": "", "peak_sessions": "",
}

// Threshold is a bound on a figure of a run.
type Threshold struct {
	Figure string
	Op     string // < <= > >=
	Bound  float64
	Text   string
}

var thresholdForm = regexp.MustCompile(`^([a-z0-9_]+)\s*(<=|>=|<|>)\s*([0-9]+(?:\.[0-9]+)?)(us|ms|s|%)?$`)

// ParseThreshold reads a threshold such as "join_p99<2s" or "stall_ratio<1%".
func ParseThreshold(text string) (Threshold, error) {
	m := thresholdForm.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return Threshold{}, fmt.Errorf("%q is no threshold; give one such as join_p99<2s", text)
	}
	unit, known := figureUnits[m[1]]
	if !known {
		return Threshold{}, fmt.Errorf("%q is no figure; there are %s", m[1], strings.Join(slices.Sorted(maps.Keys(figureUnits)), ", "))
	}
	bound, err := strconv.ParseFloat(m[3], 64)
	if err != nil {
		return Threshold{}, fmt.Errorf("%q: %w", text, err)
	}
	scale := map[string]float64{"us": 1e-6, "ms": 1e-3, "s": 1, "%": 0.01, "": 1}[m[4]]
	if isTime := m[4] == "us" || m[4] == "ms" || m[4] == "s"; isTime != (unit == "s") {
		return Threshold{}, fmt.Errorf("%q: %s is %s", text, m[1], map[string]string{"s": "a time; give us, ms or s", "": "a number; give none of us, ms and s"}[unit])
	}
	return Threshold{m[1], m[2], bound * scale, strings.TrimSpace(text)}, nil
}

// Met says whether a value is within the threshold.
func (t Threshold) Met(v float64) bool {
	switch t.Op {
	case "<":
		return v < t.Bound
	case "<=":
		return v <= t.Bound
	case ">":
		return v > t.Bound
	}
	return v >= t.Bound
}
