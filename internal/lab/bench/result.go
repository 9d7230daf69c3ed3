package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Result is one case's outcome: one line of --json.
type Result struct {
	Bench   string     `json:"bench"`
	Case    string     `json:"case"`
	Machine Machine    `json:"machine"`
	Runs    int        `json:"runs"`               // that the figures are of
	LeftOut int        `json:"left_out,omitempty"` // runs beside from which nothing is claimed
	Failed  int        `json:"failed,omitempty"`   // runs that measured nothing
	Void    []string   `json:"void,omitempty"`     // why nothing is claimed: of those left out, or of all where none is
	Seconds float64    `json:"seconds"`            // that a run took, the median
	Figures []Measured `json:"figures"`

	Unmeasured []string `json:"unmeasured,omitempty"` // figures with a goal that no run has
	Certified  int      `json:"certified"`            // runs from which something is claimed
}

// Measured is a figure over all runs.
type Measured struct {
	Name      string     `json:"name"`
	Unit      string     `json:"unit"`
	Median    float64    `json:"median"`
	Min       float64    `json:"min"`
	Max       float64    `json:"max"`
	Runs      int        `json:"runs,omitempty"` // that have the figure, where others lack it
	Reference *Reference `json:"reference"`
	Goal      *string    `json:"goal"`
	Every     bool       `json:"every,omitempty"` // the goal is of every run
	Met       *bool      `json:"met"`             // of the median, or of every run; null without a goal, and where nothing is claimed
}

// of sums up the values of a figure.
func (f Figure) of(values []float64, void bool) Measured {
	values = slices.Sorted(slices.Values(values))
	n := len(values)
	m := Measured{
		Name: f.Name, Unit: f.Unit, Reference: f.Reference,
		Median: (values[(n-1)/2] + values[n/2]) / 2, Min: values[0], Max: values[n-1],
	}
	if f.Goal != "" {
		m.Goal, m.Every = &f.Goal, f.Every
		judged := []float64{m.Median}
		if f.Every {
			judged = values
		}
		all := true
		for _, v := range judged {
			met, ok := meets(f.Goal, v)
			if !ok || void {
				return m
			}
			all = all && met
		}
		m.Met = &all
	}
	return m
}

// meets compares a value with a goal; ok is false for a goal that cannot be read.
func meets(goal string, v float64) (met, ok bool) {
	op, number, found := strings.Cut(goal, " ")
	bound, err := strconv.ParseFloat(number, 64)
	if !found || err != nil {
		return false, false
	}
	switch op {
	case ">=":
		return v >= bound, true
	case "<=":
		return v <= bound, true
	case ">":
		return v > bound, true
	case "<":
		return v < bound, true
	case "==":
		return v == bound, true
	}
	return false, false
}

// missed says whether --check fails. A figure that is missing tells of no success.
func (r *Result) missed() bool {
	return r.Certified > 0 && len(r.Unmeasured) > 0 || slices.ContainsFunc(r.Figures, func(m Measured) bool { return m.Met != nil && !*m.Met })
}

func (r *Result) writeJSON(w io.Writer) error {
	if r.Figures == nil {
		r.Figures = []Measured{}
	}
	for i := range r.Figures { // JSON has neither
		m := &r.Figures[i]
		for _, v := range []*float64{&m.Median, &m.Min, &m.Max} {
			if math.IsNaN(*v) || math.IsInf(*v, 0) {
				return fmt.Errorf("bench: figure %s of case %s is %v", m.Name, r.Case, *v)
			}
		}
	}
	return json.NewEncoder(w).Encode(r)
}

func (r *Result) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "\n%s, median of %d (range); %d of %d runs count, %.0f s each\n", r.Case, r.Runs, r.Certified, r.Runs+r.LeftOut+r.Failed, r.Seconds)
	for _, v := range r.Void {
		if r.LeftOut > 0 {
			fmt.Fprintf(w, "left out (%d in all): %s\n", r.LeftOut, v)
			continue
		}
		fmt.Fprintf(w, "nothing is claimed: %s\n", v)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, m := range r.Figures {
		goal, reference := "", ""
		if m.Goal != nil {
			goal = "goal " + *m.Goal
			if m.Every && r.Runs > 1 {
				goal += " in every run"
			}
			switch {
			case m.Met == nil:
				goal += ", open"
			case !*m.Met:
				goal += ", MISSED"
			}
		}
		if m.Reference != nil {
			reference = fmt.Sprintf("%s (%s)", short(m.Reference.Value), m.Reference.Source)
		}
		if m.Runs > 0 {
			goal = strings.TrimSpace(fmt.Sprintf("of %d runs %s", m.Runs, goal))
		}
		fmt.Fprintf(t, "  %s\t%s %s\t(%s – %s)\t%s\t%s\n", m.Name, short(m.Median), m.Unit, short(m.Min), short(m.Max), goal, reference)
	}
	for _, name := range r.Unmeasured {
		state := "MISSED"
		if r.Certified == 0 {
			state = "open"
		}
		fmt.Fprintf(t, "  %s\tnot measured\t\tgoal %s\t\n", name, state)
	}
	return t.Flush()
}

// short writes four digits, more where the number has them before the point.
func short(v float64) string {
	if math.Abs(v) >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
