package app

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/cmcd"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/promreg"
	"github.com/leeway-video/leeway/internal/testkit"
)

// TestMetricsAreThePages compares what is counted with spec/metrics.md: names, kinds and labels, in both directions.
func TestMetricsAreThePages(t *testing.T) {
	page, err := os.ReadFile("../../spec/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ kind, labels string }
	rows := map[string]row{}
	name := regexp.MustCompile("`(leeway_[a-z_]+)`")
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`leeway_") {
			continue
		}
		labels := strings.Split(cells[3], "/") // one set for all names of the row, or one each
		for i, found := range name.FindAllStringSubmatch(cells[1], -1) {
			rows[found[1]] = row{strings.TrimSpace(cells[2]), strings.ReplaceAll(strings.TrimSpace(labels[min(i, len(labels)-1)]), " ", "")}
		}
	}
	for _, d := range slices.Concat([]*metric.Def{buildInfoMetric, droppedLinesMetric, refusedAdminMetric, certificateEndMetric}, counts["up"], cmcd.Metrics(), counts["turn"], promreg.Metrics()) {
		var labels []string
		for _, l := range d.Labels {
			labels = append(labels, l.Name)
		}
		if err := testkit.LintMetric(d); err != nil {
			t.Error(err)
		}
		want, there := rows[d.Name]
		delete(rows, d.Name)
		if got := (row{d.Kind.String(), strings.Join(labels, ",")}); !there {
			t.Errorf("%s is counted and not in spec/metrics.md", d.Name)
		} else if got != want {
			t.Errorf("%s is %v, in spec/metrics.md %v", d.Name, got, want)
		}
	}
	for n := range rows {
		t.Errorf("%s is in spec/metrics.md and nothing counts it", n)
	}
}

// TestSomethingSaysWhatAMetricIsFor: a metric that no dashboard, alert, bound or page names is counted for nothing.
func TestSomethingSaysWhatAMetricIsFor(t *testing.T) {
	named := textOf(t, "../../dashboards", "../../alerts", "../../docs", "../../spec", "../../README.md")
	for _, d := range slices.Concat(counts["up"], cmcd.Metrics(), counts["turn"]) {
		if !strings.Contains(named, d.Name) {
			t.Errorf("%s is in no dashboard and no alert, and no page but spec/metrics.md says what it is for (docs/operations/observing.md has a table)", d.Name)
		}
	}
}

// textOf joins the pages, dashboards and alerts of folders, without the pages that list everything.
func textOf(t *testing.T, roots ...string) string {
	t.Helper()
	var all strings.Builder
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			lists := strings.HasSuffix(path, "spec/metrics.md") || strings.HasSuffix(path, "operations/config.md")
			if err != nil || e.IsDir() || lists || !slices.Contains([]string{".md", ".json", ".yml", ".yaml"}, filepath.Ext(path)) {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// TestNoPartCountsWhatOthersDo: an alert about all trackers, or about none, hears of trackers alone.
func TestNoPartCountsWhatOthersDo(t *testing.T) {
	foreign := map[string]string{
		"tracker": "seed|turn|origin|probe", "seed": "tracker|viewer|turn|origin|probe", "turn": "tracker|viewer|seed|origin|bus|probe",
		"probe": "tracker|viewer|seed|turn|origin|bus", "origin": "tracker|viewer|seed|turn|bus|probe", "up": "turn",
	}
	for name, others := range foreign {
		if len(counts[name]) == 0 {
			t.Errorf("%s counts nothing", name)
		}
		for _, d := range counts[name] {
			if regexp.MustCompile(`^leeway_(` + others + `)_`).MatchString(d.Name) {
				t.Errorf("%s counts %s", name, d.Name)
			}
		}
	}
	if len(counts) != len(foreign) {
		t.Errorf("counts are of %d commands, this test of %d", len(counts), len(foreign))
	}
}
