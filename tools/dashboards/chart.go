package main

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// drawnLine is one line of a chart.
type drawnLine struct {
	name   string
	points []point
	idle   bool // zero all the time
}

func (l drawnLine) last() float64 { return l.points[len(l.points)-1].value }

// chart draws what Grafana would, near enough to judge a panel by.
type chart struct {
	unit          string
	length        time.Duration
	lines         []drawnLine
	stacked, axes bool
	most          float64
	width, height int
}

// Margins of a chart with axes.
const (
	left, right, top, bottom = 58, 8, 8, 20
	grids                    = 4
)

var lineColors = []string{"#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#b877d9", "#5794f2", "#56d2c8", "#c8f2c2", "#ffa6b0"}

func lineColor(i int) string { return lineColors[i%len(lineColors)] }

// dim is a color on the page's dark ground.
func dim(i int) string {
	rgb, _ := strconv.ParseUint(lineColor(i)[1:], 16, 32)
	mix := func(shift int) uint64 { return (rgb>>shift&255)/4 + 20 }
	return fmt.Sprintf("#%02x%02x%02x", mix(16), mix(8), mix(0))
}

func (c chart) draw() string {
	lines, low, high, step := c.scale()
	box := [4]float64{0, 2, float64(c.width), float64(c.height - 2)} // left, top, right, bottom
	if c.axes {
		box = [4]float64{left, top, float64(c.width - right), float64(c.height - bottom)}
	}
	x := func(at float64) float64 { return box[0] + (box[2]-box[0])*at/c.length.Seconds() }
	y := func(v float64) float64 { return box[3] - (box[3]-box[1])*(v-low)/(high-low) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img">`, c.width, c.height)
	if c.axes {
		for i := range int(math.Round((high-low)/step)) + 1 {
			v := low + step*float64(i)
			fmt.Fprintf(&b, `<path class="grid" d="M%d %.1fH%d"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`, left, y(v), c.width-right, left-6, y(v)+3.5, html.EscapeString(format(c.unit, v)))
		}
		for i := range grids + 1 {
			at := c.length * time.Duration(i) / grids
			fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="%s">%d:%02d</text>`, x(at.Seconds()), c.height-5, anchor(i), int(at.Minutes()), int(at.Seconds())%60)
		}
	}
	for i := len(lines) - 1; i >= 0; i-- { // a stack's lowest lies on top of what reaches higher
		l := lines[i]
		path := c.path(l, x, y)
		if c.stacked && l.idle {
			continue
		}
		if c.stacked || !c.axes {
			fmt.Fprintf(&b, `<path d="%sL%.1f %.1fL%.1f %.1fZ" fill="%s" stroke="none"/>`, path, x(l.points[len(l.points)-1].at), y(low), x(l.points[0].at), y(low), dim(i))
		}
		fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.4"/>`, path, lineColor(i))
	}
	b.WriteString(`</svg>`)
	return b.String()
}

func anchor(i int) string {
	switch i {
	case 0:
		return "start"
	case grids:
		return "end"
	}
	return "middle"
}

// path is a line's; where there was no value for long it is interrupted.
func (c chart) path(l drawnLine, x, y func(float64) float64) string {
	var b strings.Builder
	for i, p := range l.points {
		move := byte('L')
		if i == 0 || !c.stacked && c.axes && p.at-l.points[i-1].at > c.length.Seconds()/20 {
			move = 'M'
		}
		fmt.Fprintf(&b, "%c%.1f %.1f", move, x(p.at), y(p.value))
	}
	return b.String()
}

// scale puts lines on each other where they are stacked, and finds the ends of the axis and the steps between them.
func (c chart) scale() (lines []drawnLine, low, high, step float64) {
	below := map[float64]float64{}
	for _, l := range c.lines {
		drawn := drawnLine{name: l.name, idle: l.idle}
		for _, p := range l.points {
			if c.stacked {
				below[p.at] += p.value
				p.value = below[p.at]
			}
			drawn.points = append(drawn.points, p)
			low, high = min(low, p.value), max(high, p.value)
		}
		lines = append(lines, drawn)
	}
	if c.most > 0 {
		high = max(c.most, high)
	}
	if high == low {
		high = low + 1
	}
	step = stepOf(c.unit, high-low)
	return lines, math.Floor(low/step+1e-9) * step, math.Ceil(high/step-1e-9) * step, step
}

// stepOf is a round number of which four or so make up a span. Binary units are round in their own prefixes.
func stepOf(unit string, span float64) float64 {
	prefix := 1.0
	for unit == units.BytesIEC && span/prefix >= 1024 {
		prefix *= 1024
	}
	least := span / prefix / grids
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, s := range []float64{1, 2, 2.5, 5} {
		if s*power >= least*0.8 {
			return s * power * prefix
		}
	}
	return 10 * power * prefix
}

// format writes a value with its unit, as short as Grafana does.
func format(unit string, v float64) string {
	switch unit {
	case units.PercentUnit:
		return short(100*v) + " %"
	case units.BytesSI:
		return scaled(v, 1000, "", "k", "M", "G", "T") + "B"
	case units.BytesIEC:
		return scaled(v, 1024, "", "Ki", "Mi", "Gi", "Ti") + "B"
	case units.BytesPerSecondSI:
		return scaled(v, 1000, "", "k", "M", "G", "T") + "B/s"
	case units.BitsPerSecondSI:
		return scaled(v, 1000, "", "k", "M", "G", "T") + "bit/s"
	case units.Seconds:
		switch {
		case v == 0:
			return "0 s"
		case math.Abs(v) < 1e-3:
			return short(v*1e6) + " µs"
		case math.Abs(v) < 1:
			return short(v*1e3) + " ms"
		}
		return short(v) + " s"
	}
	return scaled(v, 1000, "", "k", "M", "G", "T") + perSecond[unit]
}

var perSecond = map[string]string{
	units.CountsPerSecond: "/s", units.EventsPerSecond: "/s", units.MessagesPerSecond: "/s", units.RequestsPerSecond: "/s",
}

// scaled is a value with the prefix that keeps it short.
func scaled(v, base float64, prefixes ...string) string {
	i := 0
	for ; math.Abs(v) >= base && i < len(prefixes)-1; i++ {
		v /= base
	}
	return short(v) + " " + prefixes[i]
}

// short is a number of three digits.
func short(v float64) string {
	digits := 2
	switch a := math.Abs(v); {
	case a >= 100:
		digits = 0
	case a >= 10:
		digits = 1
	case a > 0 && a < 0.1:
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}
