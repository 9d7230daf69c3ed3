package transportbench

import (
	"fmt"
	"html"
	"io"
	"os"
	"strings"
	"time"
)

// A plot has the form of the paper's Figures 1 and 2: the witness's round trips above, the rate of each flow below, over
// one axis of time.
const (
	plotWidth  = 760.0
	plotLeft   = 62.0
	plotRight  = 16.0
	panelTop   = 34.0
	panelHigh  = 170.0
	panelGap   = 44.0
	plotHeight = panelTop + 2*panelHigh + panelGap + 44
	// plotWindow is what a point of a rate is the mean of.
	plotWindow = time.Second
)

// colors of flows: they differ in lightness, too.
var colors = []string{"#0b5cad", "#e08214", "#3a8f3a", "#8a3ab9", "#555555"}

// panel is one diagram: y from 0 to high.
type panel struct {
	top, high float64
	length    time.Duration
	b         *strings.Builder
}

// plotTo writes the record as an SVG file.
func (r *record) plotTo(file, title string) error {
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	_, err = io.WriteString(f, r.plot(title))
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("plot %s: %w", file, err)
	}
	return nil
}

func (r *record) plot(title string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="sans-serif" font-size="11">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="%.0f" y="18" font-size="13">%s</text>`+"\n", plotLeft, html.EscapeString(title))
	r.plotTrips(&b)
	r.plotRates(&b)
	b.WriteString("</svg>\n")
	return b.String()
}

func (r *record) plotTrips(b *strings.Builder) {
	r.echoes.mu.Lock()
	defer r.echoes.mu.Unlock()
	most := time.Duration(0)
	for _, e := range r.echoes.all {
		most = max(most, e.rtt)
	}
	p := &panel{top: panelTop, high: round(most.Seconds() * 1000), length: r.scene.length, b: b}
	p.frame("round trip, ms", false)
	p.begin(colors[len(colors)-1])
	for _, e := range r.echoes.all {
		p.point(e.at, e.rtt.Seconds()*1000)
	}
	p.end()
}

func (r *record) plotRates(b *strings.Builder) {
	p := &panel{top: panelTop + panelHigh + panelGap, high: round(float64(r.scene.line.Rate) / 1e6), length: r.scene.length, b: b}
	p.frame("Mbit/s behind the bottleneck", true)
	for i, f := range r.scene.flows {
		color := colors[i%len(colors)]
		p.begin(color)
		for t := f.from; t < r.scene.length; t += plotWindow / 2 {
			from := max(t-plotWindow/2, 0)
			p.point(t, r.rate(from, from+plotWindow, i)/1e6)
		}
		p.end()
		x := plotLeft + 10 + float64(i)*130
		fmt.Fprintf(b, `<rect x="%.0f" y="%.0f" width="12" height="3" fill="%s"/><text x="%.0f" y="%.0f">%d %s</text>`+"\n",
			x, p.top-9, color, x+17, p.top-4, i+1, f.kind)
	}
}

// round returns the next of 1, 2, 5, 10, 20 … that leaves a little room above v.
func round(v float64) float64 {
	for unit := 1e-3; ; unit *= 10 {
		for _, m := range []float64{1, 1.2, 1.5, 2, 3, 4, 5, 6, 8} {
			if m*unit >= v*1.05 {
				return m * unit
			}
		}
	}
}

func (p *panel) x(t time.Duration) float64 {
	return plotLeft + (plotWidth-plotLeft-plotRight)*t.Seconds()/p.length.Seconds()
}

func (p *panel) y(v float64) float64 { return p.top + panelHigh*(1-min(v/p.high, 1)) }

// frame draws the axes; the time is written below one of the panels only.
func (p *panel) frame(name string, times bool) {
	fmt.Fprintf(p.b, `<text transform="translate(14 %.0f) rotate(-90)" text-anchor="middle">%s</text>`+"\n", p.top+panelHigh/2, name)
	const lines = 4
	for i := range lines + 1 {
		v := p.high * float64(i) / lines
		fmt.Fprintf(p.b, `<path d="M%.1f %.1fH%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="end">%.4g</text>`+"\n",
			plotLeft, p.y(v), plotWidth-plotRight, plotLeft-6, p.y(v)+4, v)
	}
	if !times {
		return
	}
	every := max(p.length/12, time.Second).Round(5 * time.Second)
	for t := time.Duration(0); t <= p.length; t += max(every, time.Second) {
		fmt.Fprintf(p.b, `<text x="%.1f" y="%.1f" text-anchor="middle">%.0f</text>`+"\n", p.x(t), p.top+panelHigh+16, t.Seconds())
	}
	fmt.Fprintf(p.b, `<text x="%.1f" y="%.1f" text-anchor="end">s</text>`+"\n", plotWidth-plotRight, p.top+panelHigh+32)
}

func (p *panel) begin(color string) {
	fmt.Fprintf(p.b, `<polyline fill="none" stroke="%s" stroke-width="1.3" points="`, color)
}

func (p *panel) point(t time.Duration, v float64) {
	if t <= p.length {
		fmt.Fprintf(p.b, "%.1f,%.1f ", p.x(t), p.y(v))
	}
}

func (p *panel) end() { p.b.WriteString(`"/>` + "\n") }
