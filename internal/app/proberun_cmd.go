package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
)

// probeRunCmd is `leeway probe run`.
type probeRunCmd struct {
	URL       string        `arg:"" help:"Probe server: http or https, host and port."`
	Only      []string      `help:"Phases, with commas: reach, download, upload, responsiveness, http, quality, classes (default: reach,download,upload,quality, and classes with several --dscp)." placeholder:"PHASE"`
	Streams   int           `help:"Parallel WebSockets of a TCP test." default:"4" placeholder:"N"`
	Duration  time.Duration `help:"Length of each phase, 2s to 10s." default:"10s"`
	Messages  int64         `help:"Messages each way of the quality test." default:"1000" placeholder:"N"`
	DSCP      []int         `name:"dscp" help:"Mark of packets, 0 to 63. Several, with commas, are measured side by side." placeholder:"N"`
	GivesWay  bool          `help:"Leave the line to other traffic, and measure what that leaves of it each way."`
	Token     string        `help:"Join token." env:"LEEWAY_PROBE_TOKEN" placeholder:"TOKEN" xor:"token"`
	TokenFile string        `help:"File with the join token." placeholder:"FILE" xor:"token"`
	CA        string        `name:"ca" help:"Roots of the server's certificate (PEM) instead of the system's." placeholder:"FILE"`
	JSON      bool          `name:"json" help:"Print one JSON object (spec/probe.md, Results)."`
}

// Help is shown below the usage.
func (probeRunCmd) Help() string {
	return `Measures throughput and round-trip times by TCP each way, responsiveness meanwhile, then loss, order and jitter each way by a data channel.
It takes the whole line for some 20 s. Phase responsiveness takes it for up to 40 s more: round trips a minute of requests on loaded
connections of HTTP/2 and on new ones, as draft-ietf-ippm-responsiveness computes them, with the draft's confidence.
Progress is on standard error, the result on standard output. Exits with 0 if every phase has a result, with 1 if one has none (what
was measured is printed), with 2 when it was called wrongly.

Examples:
  leeway probe run http://127.0.0.1:8090
  leeway probe run --json https://probe.example.com:8090
  leeway probe run --gives-way https://probe.example.com:8090
  leeway probe run --streams 16 --only download,upload https://probe.example.com:8090
  leeway probe run --only responsiveness https://probe.example.com:8090
  leeway probe run --only reach https://probe.example.com:8090
  leeway probe run --only quality --messages 10000 --duration 10s https://probe.example.com:8090
  leeway probe run --only classes --dscp 0,34,46 https://probe.example.com:8090
  leeway probe run --token-file token.txt https://probe.example.com:8090`
}

// Run checks the line.
func (c *probeRunCmd) Run(ctx context.Context, r *run) error {
	cfg, err := c.config()
	if err != nil {
		return cmdline.Usage(fmt.Errorf("probe run: %w", err))
	}
	show := &progressLine{w: r.env.Stderr, terminal: r.env.Terminal}
	cfg.Progress = show.show
	results, err := netcheck.Run(ctx, cfg)
	show.end()
	if plan := (*netcheck.PlanError)(nil); errors.As(err, &plan) {
		return cmdline.Usage(fmt.Errorf("probe run: %w", err))
	}
	if results != nil && (len(results.Figures) > 0 || len(results.HTTP) > 0 || results.Reachability != nil || len(results.Classes) > 0) {
		if c.JSON {
			if err := printJSON(r, results); err != nil {
				return err
			}
		} else {
			printCheck(r.env.Stdout, results)
		}
	}
	if err != nil {
		return fmt.Errorf("probe run: %w", err)
	}
	if results.Reachability == nil && slices.Contains(c.Only, string(netcheck.Reach)) {
		return errors.New("probe run: the server names no STUN servers, so nothing is known of reachability (its operator sets probe.stun)")
	}
	return nil
}

func (c *probeRunCmd) config() (netcheck.Config, error) {
	cfg := netcheck.Config{URL: c.URL, Token: c.Token, Streams: c.Streams, Duration: c.Duration, Messages: c.Messages, DSCP: c.DSCP, GivesWay: c.GivesWay}
	switch {
	case c.Streams < 1:
		return cfg, &netcheck.PlanError{Text: "--streams is below 1"}
	case c.Messages < 1:
		return cfg, &netcheck.PlanError{Text: "--messages is below 1"}
	case c.Duration <= 0:
		return cfg, &netcheck.PlanError{Text: "--duration is not above 0s"}
	}
	for _, p := range c.Only {
		cfg.Phases = append(cfg.Phases, netcheck.Phase(p))
	}
	if c.TokenFile != "" {
		b, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return cfg, err
		}
		cfg.Token = strings.TrimSpace(string(b))
	}
	if c.CA != "" {
		b, err := os.ReadFile(c.CA)
		if err != nil {
			return cfg, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(b) {
			return cfg, fmt.Errorf("%s has no certificate (PEM)", c.CA)
		}
		cfg.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return cfg, nil
}

// progressLine says how far a check is: on a terminal one line that changes, elsewhere a line for each phase.
type progressLine struct {
	w        io.Writer
	terminal bool
	phase    netcheck.Phase
	open     bool // the line has no end yet
}

func (p *progressLine) show(now netcheck.Progress) {
	if now.Phase != p.phase {
		p.end()
		p.phase = now.Phase
		if !p.terminal {
			fmt.Fprintf(p.w, "%s …\n", now.Phase)
		}
	}
	if !p.terminal {
		return
	}
	rate := ""
	if now.Throughput > 0 {
		rate = bitrate(now.Throughput)
	}
	fmt.Fprintf(p.w, "\r%-9s %5.1f s  %-18s", now.Phase, now.Elapsed.Seconds(), rate)
	p.open = true
}

func (p *progressLine) end() {
	if p.open {
		fmt.Fprintln(p.w)
		p.open = false
	}
}

// printCheck prints a table: a line for each figure, a column for each direction.
func printCheck(w io.Writer, r *netcheck.Results) {
	fmt.Fprintf(w, "%s\n\n%-24s %16s %16s %16s\n", r.Server, "", "down", "up", "round trip")
	printFigures(w, r.Figures)
	if c := r.Confidence; c != nil {
		fmt.Fprintf(w, "%-24s %16s %16s %16s\n", "  its confidence", cmp.Or(c[netstat.Down], "–"), cmp.Or(c[netstat.Up], "–"), "")
	}
	for _, f := range r.HTTP {
		fmt.Fprintf(w, "%-24s %s\n", "throughput by HTTP "+string(f.Direction), figureText(f))
	}
	if a := r.Reachability; a != nil {
		fmt.Fprintf(w, "\n%-24s %s\n%-24s %s\n", "UDP by IPv4", mappingText(a.IPv4), "UDP by IPv6", mappingText(a.IPv6))
	}
	if r.OneWay != "" {
		fmt.Fprintln(w, "\nDelays of one way are not given: what is known of the clocks does not allow it.")
	}
	if len(r.Scores) > 0 {
		fmt.Fprintln(w)
	}
	for _, use := range []string{"streaming", "gaming", "rtc"} {
		if s, ok := r.Scores[use]; ok {
			fmt.Fprintf(w, "%-24s %s (%d points)\n", use, s.Class, s.Points)
		}
	}
	for _, c := range r.Classes {
		fmt.Fprintf(w, "\nDSCP %d: the server read %s, this end read %s\n", c.DSCP, marksText(c.Up), marksText(c.Down))
		printFigures(w, c.Figures)
	}
}

// mappingText says what a mapping means for links.
func mappingText(mapping string) string {
	switch mapping {
	case netstat.NoAnswer:
		return "no answer: blocked, or no address"
	case netstat.Untranslated:
		return "no NAT"
	case netstat.EndpointIndependent:
		return "NAT, endpoint-independent mapping: links to most viewers open"
	case netstat.Dependent:
		return "NAT, address-dependent mapping: viewers behind another such NAT are met by a relay alone"
	}
	return "goes through; the kind of NAT takes two STUN servers to tell"
}

func printFigures(w io.Writer, figures []netstat.Figure) {
	for _, k := range netstat.Kinds {
		cells := map[netstat.Direction]string{}
		for _, f := range figures {
			if f.Name == k.Name {
				cells[f.Direction] = figureText(f)
			}
		}
		if len(cells) > 0 {
			fmt.Fprintf(w, "%-24s %16s %16s %16s\n", strings.ReplaceAll(k.Name, "_", " "), cmp.Or(cells[netstat.Down], "–"), cmp.Or(cells[netstat.Up], "–"), cmp.Or(cells[netstat.RoundTrip], "–"))
		}
	}
}

// figureText is a value with its unit.
func figureText(f netstat.Figure) string {
	switch f.Unit {
	case "bit/s":
		return bitrate(f.Value)
	case "s":
		return fmt.Sprintf("%.2f ms", f.Value*1000)
	case "percent":
		return fmt.Sprintf("%.2f %%", f.Value)
	case "ratio":
		if slices.Contains([]string{netstat.Loss.Name, netstat.Duplicates.Name, netstat.Reordered.Name}, f.Name) {
			return fmt.Sprintf("%.2f %%", f.Value*100)
		}
		return fmt.Sprintf("%.3f", f.Value)
	case "B":
		return fmt.Sprintf("%.0f B", f.Value)
	case netstat.Responsiveness.Unit:
		return fmt.Sprintf("%.0f RPM", f.Value)
	}
	return fmt.Sprintf("%.0f", f.Value)
}

func bitrate(v float64) string {
	switch {
	case v >= 1e9:
		return fmt.Sprintf("%.2f Gbit/s", v/1e9)
	case v >= 1e6:
		return fmt.Sprintf("%.1f Mbit/s", v/1e6)
	}
	return fmt.Sprintf("%.0f kbit/s", v/1e3)
}

// marksText says which marks packets came with.
func marksText(marks [][2]int64) string {
	if marks == nil {
		return "no marks (its system cannot tell)"
	}
	var words []string
	for _, m := range marks {
		words = append(words, fmt.Sprintf("%d on %d packets", m[0], m[1]))
	}
	return strings.Join(words, ", ")
}
