package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// Grid positions: a dashboard is 24 columns wide, a row of panels has three of them.
const (
	panelWidth, panelHeight = 8, 8
	statWidth, statHeight   = 6, 4
)

// source is the data source of every query. Provisioned under any name and UID, it is picked by the dashboard's variable.
var source = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}

// siteQuery has the variable's values, and defaultPrice is what another one begins with.
const (
	siteQuery    = "label_values(leeway_viewer_received_bytes_total, site)"
	defaultPrice = "0.02"
)

// board is one dashboard.
type board struct {
	uid, title, about string
	perSite           bool // has the variable $site
	priced            bool // has the variable $price, of one GB
	stats             []panel
	rows              []row
}

type row struct {
	title  string
	panels []panel
}

// panel is one panel. about says what it shows and what to do when it looks wrong.
type panel struct {
	title, unit, about string
	series             []series
	most               float64 // end of the axis; 0: as the data have it
	stacked            bool
	floorless          bool    // values may be below 0
	colors             []color // of a stat, from values on; none: it is neither good nor bad
}

// color is what a stat has from a value on.
type color struct {
	from float64
	name string
}

// Colors by what they say.
const (
	good, doubtful, bad = "green", "orange", "red"
	neutral             = "text"
)

// series is one query. legend may name labels as {{label}}; a panel with one series without labels needs none.
// rare is one that has nothing to show where what it counts did not happen.
type series struct {
	expr, legend string
	rare         bool
}

func (b board) build() (dashboard.Dashboard, error) {
	d := dashboard.NewDashboardBuilder(b.title).Uid(b.uid).Description(b.about).Tags([]string{"leeway"}).
		Link(dashboard.NewDashboardLinkBuilder("Leeway").Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{"leeway"}).KeepTime(true)).
		Time("now-1h", "now").Refresh("10s").Timezone("browser").Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus"))
	if b.perSite {
		d.WithVariable(dashboard.NewQueryVariableBuilder("site").Label("Site").Datasource(source).
			Query(dashboard.StringOrMap{String: cog.ToPtr(siteQuery)}).
			Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Multi(true).IncludeAll(true).AllValue(".*"))
	}
	if b.priced {
		d.WithVariable(dashboard.NewTextBoxVariableBuilder("price").Label("Price of a GB").
			Description("What your CDN asks for 10⁹ bytes, in any currency.").DefaultValue(dashboard.StringOrMap{String: cog.ToPtr(defaultPrice)}))
	}
	for _, p := range b.stats {
		d.WithPanel(p.stat())
	}
	for _, r := range b.rows {
		d.WithRow(dashboard.NewRowBuilder(r.title))
		for _, p := range r.panels {
			d.WithPanel(p.graph())
		}
	}
	return d.Build()
}

func (p panel) graph() cog.Builder[dashboard.Panel] {
	g := timeseries.NewPanelBuilder().Title(p.title).Description(p.about).Datasource(source).Unit(p.unit).
		Span(panelWidth).Height(panelHeight).FillOpacity(10).ShowPoints(common.VisibilityModeNever).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(len(p.series) > 1 || p.series[0].legend != "").
			DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti))
	if !p.floorless {
		g.Min(0)
	}
	if p.most > 0 {
		g.Max(p.most)
	}
	if p.stacked {
		g.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
	}
	if p.quiet() {
		g.WithOverride(idle, unnamed)
	}
	for _, q := range p.queries() {
		g.WithTarget(q)
	}
	return g
}

// Lines at zero all the time are drawn, and not named: of thirty reasons why something is refused the two that count are to be seen.
var (
	idle    = dashboard.MatcherConfig{Id: "byValue", Options: map[string]any{"reducer": "allIsZero", "op": "gte", "value": 0}}
	unnamed = []dashboard.DynamicConfigValue{{Id: "custom.hideFrom", Value: map[string]bool{"legend": true, "tooltip": true, "viz": false}}}
)

// quiet says whether a panel has lines for all of a long set, of which most are idle. Replicas and groups of viewers are named: that
// one of them is at zero is worth knowing.
func (p panel) quiet() bool {
	return slices.ContainsFunc(p.series, func(s series) bool {
		return longSet.MatchString(s.legend) && !strings.Contains(s.legend, "{{instance}}")
	})
}

var longSet = regexp.MustCompile(`\{\{(code|kind|outcome|path|reason|subject|type)\}\}`)

// thresholds are a stat's. Grafana's own, where none are given, make everything above 80 red.
func (p panel) thresholds() cog.Builder[dashboard.ThresholdsConfig] {
	steps := []dashboard.Threshold{{Color: neutral}}
	for i, c := range p.colors {
		t := dashboard.Threshold{Color: c.name}
		if i > 0 {
			t.Value = &c.from
		}
		if steps = append(steps, t); i == 0 {
			steps = steps[1:] // the first one holds for all below the second
		}
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

// judged is the color of a stat's value.
func (p panel) judged(v float64) string {
	name := neutral
	for i, c := range p.colors {
		if i == 0 || v >= c.from {
			name = c.name
		}
	}
	return name
}

func (p panel) stat() cog.Builder[dashboard.Panel] {
	graph := common.BigValueGraphModeArea
	if p.series[0].once() {
		graph = common.BigValueGraphModeNone
	}
	s := stat.NewPanelBuilder().Title(p.title).Description(p.about).Datasource(source).Unit(p.unit).
		Span(statWidth).Height(statHeight).GraphMode(graph).Thresholds(p.thresholds()).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
	for _, q := range p.queries() {
		s.WithTarget(q)
	}
	return s
}

func (p panel) queries() []*prometheus.DataqueryBuilder {
	var all []*prometheus.DataqueryBuilder
	for i, s := range p.series {
		legend := s.legend
		if legend == "" {
			legend = p.title
		}
		q := prometheus.NewDataqueryBuilder().Datasource(source).RefId(string(rune('A' + i))).Expr(s.expr).LegendFormat(legend)
		if s.once() {
			q.Instant()
		} else {
			q.Range()
		}
		all = append(all, q)
	}
	return all
}

// once says whether a query is of the dashboard's whole span: its one value at the span's end is what counts, and asking for it
// at each point of a graph would have Prometheus read the span as many times.
func (s series) once() bool { return strings.Contains(s.expr, "$__range") }

// targets are the queries as the panel's JSON has them.
func (p panel) targets() (all []target, err error) {
	for _, b := range p.queries() {
		built, err := b.Build()
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(built)
		if err != nil {
			return nil, err
		}
		var t target
		if err := json.Unmarshal(text, &t); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}
