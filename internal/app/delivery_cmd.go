package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

type deliveryCmd struct {
	JSON bool `name:"json" help:"Print JSON, as the admin port has it."`
	adminFlag
}

// Help is shown below the usage.
func (deliveryCmd) Help() string {
	return `Figures are of one tracker, since its start, by its viewers' own reports. The ten busiest titles of a site are told apart; they
have names where the command finds the token of the process, and hashes otherwise.

Examples:
  leeway delivery
  leeway delivery --json --admin 10.0.0.5:9464`
}

// Run asks an admin port.
func (c deliveryCmd) Run(ctx context.Context, r *run) error {
	config, err := r.operator()
	if err != nil {
		return err
	}
	tokens, err := c.tokens(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var answer deliveryAnswer
	for _, token := range tokens { // with the right one titles have names; figures come with any
		status, text, err := c.ask(ctx, http.MethodGet, strings.TrimPrefix(deliveryPath, "/"), token, nil)
		switch {
		case err != nil:
			return err
		case status == http.StatusNotFound:
			return fmt.Errorf("delivery: %s is no tracker (give --admin of a tracker or of leeway up)", c.Admin)
		case status != http.StatusOK:
			return fmt.Errorf("delivery: %s refused: %s", c.Admin, strings.TrimSpace(string(text)))
		}
		answer = deliveryAnswer{}
		if err := json.Unmarshal(text, &answer); err != nil {
			return fmt.Errorf("delivery: read the answer of %s: %w", c.Admin, err)
		}
		if answer.Names {
			break
		}
	}
	if c.JSON {
		out := json.NewEncoder(r.env.Stdout)
		out.SetIndent("", "  ")
		return out.Encode(answer)
	}
	return answer.print(r.env.Stdout)
}

// print writes tables for people.
func (a *deliveryAnswer) print(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range a.Sites {
		fmt.Fprintf(out, "site %s\ttitle\tviewers\torigin MB\tseeds MB\tpeers MB\toffload\n", s.Site)
		line := func(name string, r received, rests bool) {
			share := "-"
			if r.Offload != nil {
				share = fmt.Sprintf("%.0f %%", 100**r.Offload)
			}
			if rests {
				share += "  rests"
			}
			b := r.Bytes
			fmt.Fprintf(out, "\t%s\t%d\t%.1f\t%.1f\t%.1f\t%s\n", name, r.Viewers, megabytes(b["origin"]), megabytes(b["seed"]+b["seed_relay"]), megabytes(b["peer"]+b["peer_relay"]), share)
		}
		line("(all)", s.received, false)
		for _, title := range s.Titles {
			name := title.Title
			if title.Name != "" {
				name = title.Name
			}
			line(name, title.received, title.Resting)
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	for _, s := range a.Sites {
		if s.Resting > 0 {
			fmt.Fprintf(w, "\nsite %s: titles at rest: %d. Their peers cost more than they save, so seeds leave their viewers to the origin for a while; nothing has to be done.\n", s.Site, s.Resting)
		}
		rows := slices.DeleteFunc(slices.Clone(s.Reasons), func(r reasonRow) bool { return r.Segments == 0 })
		slices.SortStableFunc(rows, func(x, y reasonRow) int { return cmp.Compare(y.Segments, x.Segments) })
		if len(rows) > 0 {
			fmt.Fprintf(w, "\nsite %s: why segments were not from peers\n", s.Site)
		}
		for _, r := range rows {
			if _, err := fmt.Fprintf(w, "  %s (%d): %s %s\n", r.Reason, r.Segments, r.Meaning, r.Do); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintln(w, "\nMB are 10⁶ bytes. Offload is the share that came from other viewers directly; relayed bytes count in peers, not in it.")
	return err
}

func megabytes(n int64) float64 { return float64(n) / 1e6 }
