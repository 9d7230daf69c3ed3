package load

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Verdict says how a run has ended.
type Verdict string

// The verdicts.
const (
	Passed  Verdict = "passed"
	Missed  Verdict = "missed"  // a threshold
	Refused Verdict = "refused" // the arms were themselves the bottleneck, or were lost: nothing is claimed
	Stopped Verdict = "stopped" // before its end
)

// Result is what came of a run.
type Result struct {
	Scenario Scenario           `json:"scenario"`
	Verdict  Verdict            `json:"verdict"`
	Reasons  []string           `json:"reasons,omitempty"` // why it was refused
	Advice   string             `json:"advice,omitempty"`
	Figures  map[string]float64 `json:"figures"` // seconds and ratios; one that was not measured is missing
	Clients  ClientFigures      `json:"clients"`
	Lost     []string           `json:"lost_arms,omitempty"`
	Clocks   string             `json:"clocks,omitempty"`   // why there are no delays of chunks, though chunks came
	Unplaced string             `json:"unplaced,omitempty"` // how many clients the arms had no place for, and why
	Knee     *Knee              `json:"knee,omitempty"`     // null: there is none
	Checked  []Checked          `json:"thresholds,omitempty"`
	Samples  []Sample           `json:"samples"`
}

// ClientFigures count clients.
type ClientFigures struct {
	Came, Opened, Failed, Lost int64
}

// Checked is a threshold and what was measured.
type Checked struct {
	Text  string   `json:"text"`
	Value *float64 `json:"value"` // null: it was not measured
	Met   bool     `json:"met"`
}

// MissedError says that a threshold was missed: exit code 1. RefusedError says that there is no verdict: exit code 3.
type (
	MissedError  struct{ Thresholds []string }
	RefusedError struct{ Reasons []string }
)

// Error implements error.
func (e *MissedError) Error() string { return "load: missed: " + strings.Join(e.Thresholds, ", ") }

// Error implements error.
func (e *RefusedError) Error() string {
	return "load: there is no verdict: " + strings.Join(e.Reasons, "; ")
}

// ExitStatus tells the case from a missed threshold.
func (e *RefusedError) ExitStatus() int { return 3 }

// Err is nil for a run that has passed.
func (r *Result) Err() error {
	switch r.Verdict {
	case Passed:
		return nil
	case Missed:
		e := &MissedError{}
		for _, c := range r.Checked {
			if !c.Met {
				e.Thresholds = append(e.Thresholds, c.Text)
			}
		}
		return e
	}
	return &RefusedError{r.Reasons}
}

// result sums a run up.
func (u *run) result(s *sampler, clocks map[string]time.Duration, stopped bool) *Result {
	c := &u.counts
	r := &Result{
		Scenario: u.Scenario, Samples: s.samples, Figures: map[string]float64{},
		Clients: ClientFigures{Came: c.came.Load(), Opened: c.opened.Load(), Failed: c.failed.Load(), Lost: c.lost.Load()},
	}
	u.mu.Lock()
	r.Lost = slices.Clone(u.lost)
	u.mu.Unlock()
	if n := c.unplaced.Load(); n > 0 {
		r.Unplaced = fmt.Sprintf("the arms had no place for %d of %d clients: %s", n, r.Clients.Came, *c.lacks.Load())
	}
	chunks := s.whole
	if chunks == nil {
		chunks = u.total
	}
	if len(clocks) > 0 && r.Scenario.oneWay() {
		chunks, r.Clocks = NewDelays(), clocksText(clocks)
		for i := range r.Samples {
			r.Samples[i].Chunk = 0
		}
	}
	u.figures(r, chunks)
	r.Knee = r.knee()
	r.check()
	r.refuse()
	if stopped {
		r.Verdict, r.Reasons = Stopped, append([]string{"the run was stopped before its end"}, r.Reasons...)
	}
	return r
}

// clocksText says it to a person.
func clocksText(clocks map[string]time.Duration) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(clocks)) {
		all = append(all, fmt.Sprintf("the clock of %s is %s from the controller's", name, clocks[name].Abs().Round(time.Millisecond)))
	}
	return "delays of chunks are left out: " + strings.Join(all, ", ") + "; behavior echo needs one clock alone"
}

// figures computes what thresholds can be on. Delays of chunks are of the time in which all clients are there: the many that come while a
// run ramps up would make a percentile of the whole run good, however late all are under the load that is asked about.
func (u *run) figures(r *Result, chunks *Delays) {
	f, d := r.Figures, u.total
	join, _, start := d.any()
	_, chunk, _ := chunks.any()
	if join {
		f["join_p50"], f["join_p99"] = d.Join(50).Seconds(), d.Join(99).Seconds()
	}
	if chunk {
		f["chunk_p50"], f["chunk_p99"] = chunks.Chunk(50).Seconds(), chunks.Chunk(99).Seconds()
	}
	if start {
		f["startup_p50"], f["startup_p99"] = d.Start(50).Seconds(), d.Start(99).Seconds()
	}
	ratio := func(name string, part, whole int64) {
		if whole > 0 {
			f[name] = float64(part) / float64(whole)
		}
	}
	var sent, held, received, nacks, packets, played, stalled, origin, peers int64
	for _, a := range u.all() {
		s := a.Statistics()
		sent, held, received = sent+s.Traffic.SentChunks, held+s.Traffic.HeldChunks, received+s.Traffic.ReceivedChunks
		packets += s.Traffic.LostPackets
		if a != u.peer { // the arms have counted what it asked for, and what it was asked for
			nacks += s.Traffic.NACKs
		}
		if v := s.Viewers; v != nil {
			played, stalled, origin, peers = played+v.Played, stalled+v.Stalled, origin+v.Origin, peers+v.Peers
			r.Clients.Lost += v.Errors // viewers that gave up: their sessions are there until they leave, and no other figure has them
		}
	}
	ratio("failed_ratio", r.Clients.Failed, r.Clients.Came)
	ratio("lost_ratio", r.Clients.Lost, r.Clients.Opened)
	ratio("held_ratio", held, sent+held)
	ratio("delivered_ratio", received, sent)
	ratio("stall_ratio", stalled, played+stalled)
	ratio("offload", peers, origin+peers)
	f["nacks"] = float64(nacks)
	f["packet_loss"] = float64(packets)
	for _, s := range r.Samples {
		f["peak_sessions"] = max(f["peak_sessions"], float64(s.Up))
	}
}

// check compares with the thresholds. A figure that was not measured is not within any.
func (r *Result) check() {
	r.Verdict = Passed
	for _, text := range r.Scenario.Thresholds {
		t, err := ParseThreshold(text)
		c := Checked{Text: text}
		if v, measured := r.Figures[t.Figure]; measured && err == nil {
			c.Value, c.Met = &v, t.Met(v)
		}
		if !c.Met {
			r.Verdict = Missed
		}
		r.Checked = append(r.Checked, c)
	}
}

// refuse takes the verdict back if the arms spoiled too much of the run, or of the time in which all clients were there: what thresholds ask
// about may be a small part of a run.
func (r *Result) refuse() {
	if len(r.Samples) == 0 {
		r.Verdict, r.Reasons = Refused, []string{"the run was shorter than a second"}
		return
	}
	if len(r.Lost) > 0 {
		r.Verdict, r.Reasons = Refused, append(r.Reasons, "lost arms: "+strings.Join(r.Lost, ", "))
	}
	if r.Clocks != "" && slices.ContainsFunc(r.Checked, func(c Checked) bool { return strings.HasPrefix(c.Text, "chunk_") }) {
		r.Verdict, r.Reasons = Refused, append(r.Reasons, r.Clocks)
	}
	if r.Unplaced != "" {
		r.Verdict, r.Reasons = Refused, append(r.Reasons, r.Unplaced)
	}
	whole := slices.DeleteFunc(slices.Clone(r.Samples), func(s Sample) bool { return !s.Whole })
	for _, part := range []struct {
		samples []Sample
		of      string
	}{{r.Samples, "seconds"}, {whole, "seconds in which all clients were there"}} {
		if reasons := spoiled(part.samples, part.of); reasons != nil {
			most, arms := 0.0, 1
			for _, s := range r.Samples {
				most, arms = max(most, s.ArmMost), max(arms, s.Arms)
			}
			r.Verdict, r.Reasons, r.Advice = Refused, append(r.Reasons, reasons...), advice(arms, most)
			return
		}
	}
}

// spoiled says why nothing is claimed from these seconds; nil: few enough were spoiled.
func spoiled(samples []Sample, of string) (reasons []string) {
	n, why := 0, map[string]int{}
	for _, s := range samples {
		if len(s.Spoiled) > 0 {
			n++
		}
		for _, reason := range s.Spoiled {
			why[reason]++
		}
	}
	if float64(n) <= mostSpoiled*float64(len(samples)) {
		return nil
	}
	for _, reason := range slices.SortedFunc(maps.Keys(why), func(a, b string) int { return cmp.Or(why[b]-why[a], strings.Compare(a, b)) }) {
		reasons = append(reasons, fmt.Sprintf("%s in %d of %d %s", reason, why[reason], len(samples), of))
	}
	return reasons
}

// advice says what would help, where the busiest of so many arms used a share of its processors.
func advice(arms int, most float64) string {
	if need := int(math.Ceil(float64(arms) * most / comfortable)); need > arms {
		return fmt.Sprintf("%d arms, each on processors of its own, would do: the busiest of %d used %.0f %% of its processors", need, arms, 100*most)
	}
	return fmt.Sprintf("more arms would not help: the busiest of %d used %.0f %% of its processors. Keep other programs off the machine, and raise net.core.rmem_max if sockets drop", arms, 100*most)
}

// notes are what is said below the reasons.
func (r *Result) notes() (all []string) {
	for _, note := range []string{r.Advice, r.Clocks} {
		if note != "" && !slices.Contains(r.Reasons, note) {
			all = append(all, note)
		}
	}
	return all
}

// WriteTable writes the result for a person.
func (r *Result) WriteTable(w io.Writer) error {
	fmt.Fprintf(w, "\n%s: %s\n", r.Scenario.Name, r.Verdict)
	for _, reason := range r.Reasons {
		fmt.Fprintf(w, "  %s\n", reason)
	}
	for _, note := range r.notes() {
		fmt.Fprintf(w, "  %s\n", note)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "  clients\t%d came\t%d connected\t%d did not\t%d were lost\n", r.Clients.Came, r.Clients.Opened, r.Clients.Failed, r.Clients.Lost)
	for _, name := range slices.Sorted(maps.Keys(r.Figures)) {
		fmt.Fprintf(t, "  %s\t%s\n", name, figure(name, r.Figures[name]))
	}
	var arm, peer float64
	for _, s := range r.Samples {
		arm, peer = max(arm, s.ArmCPU), max(peer, s.PeerCPU)
	}
	fmt.Fprintf(t, "  processors, at most\tarms %.2f\tpeer %.2f\n", arm, peer)
	fmt.Fprintf(t, "  knee\t%s\n", r.kneeText())
	for _, row := range r.thresholds() {
		fmt.Fprintf(t, "  threshold %s\t%s\t%s\n", row[0], row[1], row[2])
	}
	return t.Flush()
}

// thresholds are shown with what was measured and how that was judged: not at all, where the run has no verdict.
func (r *Result) thresholds() (rows [][3]string) {
	for _, c := range r.Checked {
		met, value := "met", "not measured"
		if !c.Met {
			met = "MISSED"
		}
		if c.Value != nil {
			value = fmt.Sprintf("%.4g", *c.Value)
		}
		if r.Verdict == Refused || r.Verdict == Stopped {
			met = "open"
		}
		rows = append(rows, [3]string{c.Text, value, met})
	}
	return rows
}

func figure(name string, v float64) string {
	if figureUnits[name] == "s" {
		if v < 1 {
			return fmt.Sprintf("%.3g ms", v*1000)
		}
		return fmt.Sprintf("%.3g s", v)
	}
	return fmt.Sprintf("%.4g", v)
}
