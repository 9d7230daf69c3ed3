package probebench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
)

// plan is what a check measures.
type plan struct {
	phases   []netcheck.Phase
	duration time.Duration // of each
	streams  int
	dscp     []int
	givesWay bool
	server   netip.Addr // not valid: the IPv4 address
	// begins, if there is one, is told when a phase begins.
	begins func(netcheck.Phase)
}

// results are a check's. Both clients have the same JSON (spec/probe.md, Results).
type results struct{ netcheck.Results }

func (r results) value(k netstat.Kind, d netstat.Direction) (float64, error) {
	v, ok := r.Find(k, d)
	if !ok {
		return 0, fmt.Errorf("the check has no figure %s %s", k.Name, d)
	}
	return v, nil
}

// endedError is a check that had no result, or not all of it, and has said why.
type endedError struct{ why string }

// Error implements error.
func (e *endedError) Error() string { return "the check: " + e.why }

// runTerminal is `leeway probe run`.
func runTerminal(ctx context.Context, _ *bench.Run, s *stage, p plan) (results, error) {
	leeway, err := bench.Leeway()
	if err != nil {
		return results{}, err
	}
	at := s.server.Addr()
	if p.server.IsValid() {
		at = p.server
	}
	args := []string{"probe", "run", "--json", "--duration", p.duration.String(), "--only", join(p.phases)}
	if p.streams > 0 {
		args = append(args, "--streams", fmt.Sprint(p.streams))
	}
	for _, mark := range p.dscp {
		args = append(args, "--dscp", fmt.Sprint(mark))
	}
	if p.givesWay {
		args = append(args, "--gives-way")
	}
	if s.pair != nil {
		args = append(args, "--ca", s.pair.Cert)
	}
	cmd := s.client.Command(ctx, leeway, append(args, s.url(at))...)
	var out, said bytes.Buffer
	cmd.Stdout = &out
	told, err := cmd.StderrPipe()
	if err != nil {
		return results{}, err
	}
	if err := cmd.Start(); err != nil {
		return results{}, fmt.Errorf("start the check: %w", err)
	}
	p.hear(io.TeeReader(told, &said)) // until it ends
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 {
		return results{}, &endedError{string(bytes.TrimSpace(said.Bytes()))}
	}
	if err != nil {
		return results{}, fmt.Errorf("the check: %w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	var r results
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return r, fmt.Errorf("results of the check: %w", err)
	}
	return r, nil
}

// hear reads what the check says of its phases, a line each.
func (p plan) hear(told io.Reader) {
	lines := bufio.NewScanner(told)
	for lines.Scan() {
		if phase, _, ok := strings.Cut(lines.Text(), " "); ok && p.begins != nil {
			p.begins(netcheck.Phase(phase))
		}
	}
}

func join(phases []netcheck.Phase) string {
	var names []string
	for _, p := range phases {
		names = append(names, string(p))
	}
	return strings.Join(names, ",")
}
