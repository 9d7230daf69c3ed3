package testkit

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/leeway-video/leeway/internal/metric"
)

var (
	nameForm  = regexp.MustCompile(`^leeway(_[a-z][a-z0-9]*)+$`)
	valueForm = regexp.MustCompile(`^[a-z0-9]+([-.][a-z0-9]+)*$`)
)

// unbased are suffixes of units that are not base units, with the unit to use.
var unbased = map[string]string{
	"ms": "seconds", "us": "seconds", "milliseconds": "seconds", "microseconds": "seconds", "minutes": "seconds",
	"kb": "bytes", "kib": "bytes", "mb": "bytes", "mib": "bytes", "kilobytes": "bytes", "megabytes": "bytes",
	"percent": "ratio", "mbit": "bits", "kbit": "bits",
}

// forbidden labels would make an open set out of a closed one, or identify a viewer. A title's values are bounded by the collector that
// tells them, and are no names unless the operator says so.
var forbidden = []string{"peer", "session", "swarm", "address", "ip", "url", "error", "key", "segment"}

// accepts reports whether the label values fit the definition: the right number, each in its closed set. A label without
// Values takes anything, since only a registry knows the configuration.
func accepts(d *metric.Def, labels []string) bool {
	if len(labels) != len(d.Labels) {
		return false
	}
	for i, l := range d.Labels {
		if l.Values != nil && !slices.Contains(l.Values, labels[i]) {
			return false
		}
	}
	return true
}

// LintMetric reports what is wrong with a definition by the rules of spec/metrics.md, or nil.
func LintMetric(d *metric.Def) error {
	if !nameForm.MatchString(d.Name) {
		return fmt.Errorf("metric %q: name is not leeway_<service>_<thing>_<unit>; use lower case and underscores", d.Name)
	}
	if d.Help == "" {
		return fmt.Errorf("metric %s: help is missing; say in one sentence what is counted", d.Name)
	}
	if total := strings.HasSuffix(d.Name, "_total"); total != (d.Kind == metric.Counter) {
		return fmt.Errorf("metric %s: a %s and the suffix _total do not fit; _total is for counters, all of them", d.Name, d.Kind)
	}
	for _, word := range strings.Split(d.Name, "_") {
		if base, ok := unbased[word]; ok {
			return fmt.Errorf("metric %s: unit %q is not a base unit; use %s", d.Name, word, base)
		}
	}
	if err := lintBuckets(d); err != nil {
		return err
	}
	return lintLabels(d)
}

func lintBuckets(d *metric.Def) error {
	if d.Kind != metric.Histogram {
		if d.Buckets != nil {
			return fmt.Errorf("metric %s: a %s has no buckets", d.Name, d.Kind)
		}
		return nil
	}
	if !strings.HasSuffix(d.Name, "_seconds") && !strings.HasSuffix(d.Name, "_bytes") {
		return fmt.Errorf("metric %s: a histogram's name ends in its base unit", d.Name)
	}
	if len(d.Buckets) == 0 || !slices.IsSorted(d.Buckets) {
		return fmt.Errorf("metric %s: a histogram needs ascending buckets", d.Name)
	}
	return nil
}

func lintLabels(d *metric.Def) error {
	seen := map[string]bool{}
	for _, l := range d.Labels {
		if seen[l.Name] || slices.Contains(forbidden, l.Name) {
			return fmt.Errorf("metric %s: label %q is there twice or forbidden; no label holds a peer, swarm, address, URL or error text", d.Name, l.Name)
		}
		seen[l.Name] = true
		if (l.Values == nil) != (l.Name == "site" || l.Name == "title") {
			return fmt.Errorf("metric %s: label %q needs a closed set of values (and site none: it comes from the configuration; nor title: a collector bounds it)", d.Name, l.Name)
		}
		for _, v := range l.Values {
			if !valueForm.MatchString(v) {
				return fmt.Errorf("metric %s: label %s has the value %q; use lower case, digits and hyphens", d.Name, l.Name, v)
			}
		}
	}
	return nil
}
