package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

const root = "../.."

// TestFilesAreGenerated: the files that people load are what this program writes, and Grafana's schema knows every field.
func TestFilesAreGenerated(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	for _, b := range boards {
		want, err := b.encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(root, "dashboards", b.file()))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("dashboards/%s is not what tools/dashboards writes (make dashboards)", b.file())
		}
		var d dashboard.Dashboard
		if err := d.UnmarshalJSONStrict(got); err != nil {
			t.Errorf("%s: %v", b.file(), err)
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "dashboards", "*.json"))
	if err != nil || len(files) != len(boards) {
		t.Errorf("%d files for %d dashboards: %v", len(files), len(boards), err)
	}
}

// TestPanelsExplainThemselves: each has a unit, a legend where there is more than one line, and says what to do.
func TestPanelsExplainThemselves(t *testing.T) {
	for _, b := range boards {
		titles := map[string]bool{}
		for _, p := range b.panels() {
			if p.unit == "" || len(p.about) < 40 || len(p.series) == 0 {
				t.Errorf("%s: %q lacks a unit, a query or an explanation", b.uid, p.title)
			}
			for _, s := range p.series {
				if len(p.series) > 1 && s.legend == "" {
					t.Errorf("%s: %q has lines without a legend", b.uid, p.title)
				}
			}
			titles[p.title] = true
		}
		if len(titles) < len(b.panels())-len(b.stats) {
			t.Errorf("%s: two panels of a name", b.uid)
		}
	}
}

// TestStatsAreColoredByWhatTheyMean: one without colors of its own would be red from 80 on; and what is idle has no place in legends.
func TestStatsAreColoredByWhatTheyMean(t *testing.T) {
	for _, b := range boards {
		for _, p := range b.stats {
			built, err := p.thresholds().Build()
			if err != nil || len(built.Steps) == 0 || built.Steps[0].Value != nil {
				t.Errorf("%s: %q has the steps %+v: %v", b.uid, p.title, built.Steps, err)
			}
			for i, c := range p.colors {
				if i > 0 && (*built.Steps[i].Value != c.from || c.from <= p.colors[i-1].from || p.judged(c.from) != c.name) {
					t.Errorf("%s: %q: step %d is %+v", b.uid, p.title, i, built.Steps[i])
				}
			}
		}
		for _, p := range b.panels()[len(b.stats):] {
			built, err := p.graph().Build()
			if err != nil || (len(built.FieldConfig.Overrides) == 1) != p.quiet() {
				t.Errorf("%s: %q: %+v: %v", b.uid, p.title, built.FieldConfig, err)
			}
		}
	}
	if (panel{colors: []color{{0, good}, {2, bad}}}).judged(-1) != good || (panel{}).judged(1) != neutral {
		t.Error("colors are not by value")
	}
	for legend, quiet := range map[string]bool{"{{reason}}": true, "error {{code}}": true, "{{instance}} {{reason}}": false, "{{variant}}": false, "corrupt": false} {
		if (panel{series: []series{{legend: legend}}}).quiet() != quiet {
			t.Errorf("idle lines %s: quiet is not %v", legend, quiet)
		}
	}
}

func (b board) panels() []panel {
	all := append([]panel(nil), b.stats...)
	for _, r := range b.rows {
		all = append(all, r.panels...)
	}
	return all
}

// TestSharesAreOfOneKind: what is added up over a span is not divided by what a second of it brought.
func TestSharesAreOfOneKind(t *testing.T) {
	for _, b := range boards {
		for _, p := range b.panels() {
			for _, q := range p.series {
				expr, err := parser.NewParser(parser.Options{}).ParseExpr(variables.Replace(q.expr))
				if err != nil {
					t.Fatal(err)
				}
				parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
					if d, ok := n.(*parser.BinaryExpr); ok && calls(d.LHS, "increase") != calls(d.RHS, "increase") && calls(d.LHS, "rate") != calls(d.RHS, "rate") {
						t.Errorf("%s: %q mixes increase and rate: %s", b.uid, p.title, d)
					}
					return nil
				})
			}
		}
	}
}

// calls says whether a function is called in an expression.
func calls(expr parser.Expr, name string) (found bool) {
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		c, ok := n.(*parser.Call)
		found = found || ok && c.Func.Name == name
		return nil
	})
	return found
}

// TestQueriesNameWhatIsExported reads the list of metrics that a test of the services compares with their code.
func TestQueriesNameWhatIsExported(t *testing.T) {
	known := metrics(t)
	for _, b := range boards {
		for _, p := range b.panels() {
			for _, q := range p.series {
				asks(t, b.uid+": "+p.title, known, q.expr, q.legend)
			}
		}
	}
}

// TestProcessesAreOurs: a Prometheus that scrapes other programs as well has their processor time under the same name.
func TestProcessesAreOurs(t *testing.T) {
	for _, b := range boards {
		for _, p := range b.panels() {
			for _, q := range p.series {
				if strings.Contains(q.expr, "process_") && !strings.Contains(q.expr, " and on (instance) leeway_build_info") {
					t.Errorf("%s: %q shows processes of other programs: %s", b.uid, p.title, q.expr)
				}
			}
		}
	}
}

var variables = strings.NewReplacer("$__rate_interval", "1m", "$__range", "1h", "$site", "demo", "$price", "0.02")

// asks checks that a query is one, and that what it and its legend name is exported.
func asks(t *testing.T, who string, known map[string]map[string]bool, query, legend string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(variables.Replace(query))
	if err != nil {
		t.Errorf("%s: %v", who, err)
		return
	}
	available := map[string]bool{"le": true, "instance": true}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		has, ok := known[v.Name]
		if !ok {
			t.Errorf("%s asks for %s, which no process exports", who, v.Name)
		}
		for l := range has {
			available[l] = true
		}
		for _, m := range v.LabelMatchers {
			if m.Name != model.MetricNameLabel && !has[m.Name] {
				t.Errorf("%s: %s has no label %s", who, v.Name, m.Name)
			}
		}
		return nil
	})
	for _, l := range wanted(expr, legend) {
		if !available[l] {
			t.Errorf("%s: nothing has the label %s", who, l)
		}
	}
}

var inLegend = regexp.MustCompile(`\{\{(\w+)\}\}`)

// wanted lists the labels that a query groups by and that its legend names.
func wanted(expr parser.Expr, legend string) (all []string) {
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if a, ok := n.(*parser.AggregateExpr); ok {
			all = append(all, a.Grouping...)
		}
		return nil
	})
	for _, m := range inLegend.FindAllStringSubmatch(legend, -1) {
		all = append(all, m[1])
	}
	return all
}

// metrics reads spec/metrics.md: the labels of each series that Prometheus sees, those of a histogram by their suffixes.
func metrics(t *testing.T) map[string]map[string]bool {
	text, err := os.ReadFile(filepath.Join(root, "spec", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]map[string]bool{
		"process_cpu_seconds_total": {}, "process_resident_memory_bytes": {}, "process_open_fds": {}, "process_max_fds": {},
		"ALERTS": {"alertname": true, "alertstate": true},
	}
	name := regexp.MustCompile("`(leeway_\\w+)`")
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 {
			continue
		}
		has := map[string]bool{}
		for _, l := range regexp.MustCompile(`\w+`).FindAllString(cells[3], -1) {
			has[l] = true
		}
		for _, m := range name.FindAllStringSubmatch(cells[1], -1) {
			if strings.TrimSpace(cells[2]) != "histogram" {
				known[m[1]] = has
				continue
			}
			for _, suffix := range []string{"_sum", "_count"} {
				known[m[1]+suffix] = has
			}
			buckets := map[string]bool{"le": true}
			for l := range has {
				buckets[l] = true
			}
			known[m[1]+"_bucket"] = buckets
		}
	}
	if len(known) < 40 {
		t.Fatalf("only %d metrics in spec/metrics.md: has its table changed?", len(known))
	}
	return known
}
