package load

import (
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
)

// Sizes of a curve, pixels.
const (
	curveWidth  = 720
	curveHeight = 160
)

// curve is one drawing of the page.
type curve struct {
	Title, Unit string
	Most        string
	Lines       []line
	Width       int
	Height      int
	Seconds     int
	Knee        float64 // where it is on the page; 0: there is none
}

type line struct {
	Name, Color string
	Points      string
}

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.R.Scenario.Name}}: {{.R.Verdict}}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 760px; margin: 2em auto; padding: 0 1em; color: #222; background: #fff }
table { border-collapse: collapse } td, th { text-align: left; padding: .15em 1.5em .15em 0; font-variant-numeric: tabular-nums }
svg { background: #f6f6f6; display: block } .key { font-size: 13px } .missed { font-weight: bold }
</style></head><body>
<h1>{{.R.Scenario.Name}}: {{.R.Verdict}}</h1>
{{with .R.Scenario.About}}<p>{{.}}</p>{{end}}
{{range .R.Reasons}}<p>{{.}}</p>{{end}}{{range .Notes}}<p>{{.}}</p>{{end}}
<p>{{.R.Clients.Came}} clients came, {{.R.Clients.Opened}} connected, {{.R.Clients.Failed}} did not, {{.R.Clients.Lost}} were lost.</p>
<p>Knee: {{.Knee}}.{{if .R.Knee}} The dashed lines are there.{{end}}</p>
{{with .Thresholds}}<table><tr><th>threshold</th><th>measured</th><th></th></tr>
{{range .}}<tr><td>{{index . 0}}</td><td>{{index . 1}}</td><td{{if eq (index . 2) "MISSED"}} class="missed"{{end}}>{{index . 2}}</td></tr>
{{end}}</table>{{end}}
<table>{{range .Figures}}<tr><td>{{index . 0}}</td><td>{{index . 1}}</td></tr>
{{end}}</table>
{{range .Curves}}<h2>{{.Title}}</h2>
<svg viewBox="0 0 {{.Width}} {{.Height}}" width="{{.Width}}" height="{{.Height}}" role="img" aria-label="{{.Title}}">
{{range .Lines}}<polyline fill="none" stroke="{{.Color}}" stroke-width="1.5" points="{{.Points}}"/>
{{end}}{{with .Knee}}<line x1="{{.}}" x2="{{.}}" y1="0" y2="160" stroke="#777" stroke-dasharray="4 3"/>{{end}}</svg><p class="key">0 to {{.Seconds}} s; 0 to {{.Most}} {{.Unit}}.{{range .Lines}} <span style="color:{{.Color}}">■</span> {{.Name}}{{end}}</p>
{{end}}</body></html>
`))

// WritePage writes the result as a page that needs nothing else.
func (r *Result) WritePage(w io.Writer) error {
	var figures [][2]string
	for _, name := range slices.Sorted(maps.Keys(r.Figures)) {
		figures = append(figures, [2]string{name, figure(name, r.Figures[name])})
	}
	of := func(title, unit string, lines ...func(Sample) float64) curve { return r.draw(title, unit, lines) }
	curves := []curve{
		of("Clients", "clients", func(s Sample) float64 { return float64(s.Up) }, func(s Sample) float64 { return float64(s.Lost) }).named("connected", "lost"),
		of("Processors", "", func(s Sample) float64 { return s.ArmCPU }, func(s Sample) float64 { return s.PeerCPU }).named("arms", "peer"),
		of("Memory", "MB", func(s Sample) float64 { return float64(s.ArmRSS) / 1e6 }, func(s Sample) float64 { return float64(s.PeerRSS) / 1e6 }).named("arms", "peer"),
		of("Received", "Mbit/s", func(s Sample) float64 { return s.Received / 1e6 }).named("all"),
		of("Delay of chunks, 99th percentile", "ms", func(s Sample) float64 { return s.Chunk * 1e3 }).named("chunks"),
		of("Time to connect, 99th percentile", "ms", func(s Sample) float64 { return s.Join * 1e3 }).named("clients"),
		of("Packets asked for again", "a second", func(s Sample) float64 { return float64(s.NACKs) }).named("all"),
		of("Lateness of the arms' clocks, 99th percentile", "ms", func(s Sample) float64 { return s.Lag * 1e3 }).named("latest arm"),
	}
	return page.Execute(w, struct {
		R          *Result
		Notes      []string
		Knee       string
		Thresholds [][3]string
		Figures    [][2]string
		Curves     []curve
	}{r, r.notes(), r.kneeText(), r.thresholds(), figures, curves})
}

var colors = []string{"#0057b8", "#c1440e"}

func (r *Result) draw(title, unit string, lines []func(Sample) float64) curve {
	c := curve{Title: title, Unit: unit, Width: curveWidth, Height: curveHeight}
	most, last := 0.0, 1.0
	for _, s := range r.Samples {
		last = max(last, s.Second)
		for _, f := range lines {
			most = max(most, f(s))
		}
	}
	c.Most, c.Seconds = fmt.Sprintf("%.4g", most), int(last)
	if most == 0 {
		most = 1
	}
	if r.Knee != nil {
		c.Knee = r.Knee.Second / last * curveWidth
	}
	for i, f := range lines {
		var points strings.Builder
		for _, s := range r.Samples {
			fmt.Fprintf(&points, "%.1f,%.1f ", s.Second/last*curveWidth, curveHeight-f(s)/most*(curveHeight-4)-2)
		}
		c.Lines = append(c.Lines, line{Color: colors[i%len(colors)], Points: strings.TrimSpace(points.String())})
	}
	return c
}

func (c curve) named(names ...string) curve {
	for i, n := range names {
		c.Lines[i].Name = n
	}
	return c
}
