package lab

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/lab/load"
	"github.com/leeway-video/leeway/internal/promreg"
)

type loadCmd struct {
	Run   loadRunCmd   `cmd:"" help:"Run a scenario, and say whether the thresholds were met."`
	Check loadCheckCmd `cmd:"" help:"Say what is wrong with a scenario."`
}

type loadRunCmd struct {
	Scenario string            `arg:"" help:"File of the scenario." type:"existingfile"`
	Listen   string            `help:"Address that remote arms dial." default:"127.0.0.1:0" placeholder:"HOST:PORT"`
	Token    string            `help:"Token that arms have to say; by default one that only local arms know." env:"LEEWAY_ARM_TOKEN" placeholder:"TOKEN"`
	Set      map[string]string `help:"Replace $${NAME} in the scenario; may be repeated." placeholder:"NAME=TEXT"`
	JSON     string            `name:"json" help:"File for the result as JSON; - is standard output." placeholder:"FILE" type:"path"`
	ArmsAt   string            `name:"arms-at" help:"Address of this machine by which local arms reach a server elsewhere, and remote arms the peer of the scenario (default: the one from which they reach the controller)." placeholder:"IP"`
	Tested   int               `help:"Process of a server under test on this machine: its processors and memory, with all processes below it, stand beside those of the arms." placeholder:"PID"`
	Wait     time.Duration     `help:"How long arms may take to be there." default:"1m"`
	Metrics  string            `help:"Address of /metrics for Prometheus while it runs." placeholder:"HOST:PORT"`
	HTML     string            `name:"html" help:"File for the result as a page with curves." placeholder:"FILE" type:"path"`
}

// Help is shown below the usage.
func (loadRunCmd) Help() string {
	return `Starts the local arms of the scenario, waits for the remote ones, and has clients come, stay and leave. Exit code: 0 if all thresholds
were met, 1 if one was missed, 3 if there is no verdict because the arms were themselves the bottleneck or were lost.

Examples:
  leeway-lab load run scenarios/echo.yaml
  leeway-lab load run --html result.html --json result.json scenarios/j2.yaml
  leeway-lab load run --set host=127.0.0.1:8080 scenarios/viewers-vod.yaml
  leeway-lab load run --tested $(pidof janus) --set whip=… --set whep=… scenarios/media-server.yaml
  leeway-lab load run --metrics 127.0.0.1:9470 scenarios/j1.yaml
  leeway-lab load run --listen 10.0.0.1:7600 --token secret scenario.yaml    (and on other machines: leeway-lab arm --token secret ws://10.0.0.1:7600/)`
}

// Run runs the scenario.
func (c *loadRunCmd) Run(ctx context.Context, s *Streams) error {
	scenario, err := readScenario(c.Scenario, c.Set)
	if err != nil {
		return cmdline.Usage(err)
	}
	if c.Token == "" {
		if scenario.Arms.Remote > 0 {
			return cmdline.Usage(errors.New("load: remote arms need a --token"))
		}
		c.Token = rand.Text()
	}
	controller, err := load.Listen(load.Config{Listen: c.Listen, Token: c.Token})
	if err != nil {
		return err
	}
	defer controller.Close()
	if err := c.reachable(scenario, controller.URL()); err != nil {
		return cmdline.Usage(err)
	}
	if scenario.Arms.Remote > 0 {
		fmt.Fprintf(s.Stderr, "waiting for %d remote arms at %s\n", scenario.Arms.Remote, controller.URL())
	}
	shown := newProgress(s.Stderr)
	progress := shown.sample
	if c.Metrics != "" {
		count, stop, err := serveMetrics(c.Metrics)
		if err != nil {
			return err
		}
		defer stop()
		progress = func(s load.Sample) { shown.sample(s); count(s) }
	}
	r := load.Runner{
		Scenario: scenario, Controller: controller, Tested: c.Tested, Wait: c.Wait, Log: s.Stderr, Progress: progress,
		Start: func(l load.Launch) (func() error, error) { return c.startArm(controller.URL(), l, s.Stderr) },
	}
	result, err := r.Run(ctx)
	shown.end()
	if err != nil {
		return err
	}
	return errors.Join(c.write(result, s), result.Err())
}

// reachable says why arms elsewhere would not reach the peer that the controller starts: each client would wait in vain. Local arms have their
// sockets where they reach the controller, which is a loopback address if it listens on all.
func (c *loadRunCmd) reachable(s load.Scenario, controller string) error {
	at, err := url.Parse(controller)
	if err != nil {
		return err
	}
	host, err := netip.ParseAddr(at.Hostname())
	if c.ArmsAt == "" && s.Arms.Remote > 0 && s.HasPeer() && err == nil && host.IsUnspecified() {
		return errors.New("load: remote arms have to reach the peer of this scenario: give --arms-at with an address of this machine")
	}
	return nil
}

// serveMetrics serves /metrics, and returns what counts samples and what ends it.
func serveMetrics(addr string) (count func(load.Sample), stop func(), err error) {
	registry, err := promreg.New(nil, load.Metrics()...)
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, nil, fmt.Errorf("load: --metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", registry.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: metricsPatience}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l)
	}()
	return func(s load.Sample) { s.Count(registry) }, func() { _ = server.Close(); <-served }, nil
}

// metricsPatience is how long a scraper may take to ask.
const metricsPatience = 10 * time.Second

// write writes the result in the forms that were asked for.
func (c *loadRunCmd) write(r *load.Result, s *Streams) error {
	var err error
	if c.JSON != "-" {
		err = r.WriteTable(s.Stdout)
	}
	return errors.Join(err, writeTo(c.JSON, s.Stdout, func(w io.Writer) error { return json.NewEncoder(w).Encode(r) }), writeTo(c.HTML, s.Stdout, r.WritePage))
}

func writeTo(file string, stdout io.Writer, write func(io.Writer) error) error {
	switch file {
	case "":
		return nil
	case "-":
		return write(stdout)
	}
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("load: result: %w", err)
	}
	return errors.Join(write(f), f.Close())
}

// armPatience is how long a local arm may take to end.
const armPatience = 15 * time.Second

// startArm starts an arm beside this program. Its token is in its environment, which other users cannot read. It is of a process group of its
// own: Ctrl-C ends the run, and the run ends its arms once they have told the last.
func (c *loadRunCmd) startArm(controller string, l load.Launch, log io.Writer) (stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{"arm", "--name", l.Name}
	if l.Sockets > 0 {
		args = append(args, "--max-sockets", strconv.Itoa(l.Sockets))
	}
	if c.ArmsAt != "" {
		args = append(args, "--listen", c.ArmsAt)
	}
	cmd := exec.Command(self, append(args, controller)...)
	cmd.Env = append(os.Environ(), "LEEWAY_ARM_TOKEN="+c.Token)
	if l.Processors > 0 {
		cmd.Env = append(cmd.Env, "GOMAXPROCS="+strconv.Itoa(l.Processors))
	}
	cmd.Stderr, cmd.SysProcAttr = log, &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(armPatience, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		return cmd.Wait()
	}, nil
}

// progress is a line that is written over on a terminal, and a line every ten seconds elsewhere.
type progress struct {
	w        io.Writer
	terminal bool
	n        int
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

const plainEvery = 10 // seconds

func (p *progress) sample(s load.Sample) {
	text := fmt.Sprintf("%4.0f s  %d up, %d failed, %d lost  join p99 %.0f ms  chunk p99 %.0f ms  %.1f Mbit/s  arms %.2f cpu  peer %.2f cpu",
		s.Second, s.Up, s.Failed, s.Lost, s.Join*1e3, s.Chunk*1e3, s.Received/1e6, s.ArmCPU, s.PeerCPU)
	if len(s.Spoiled) > 0 {
		text += "  spoiled: " + s.Spoiled[0]
	}
	p.n++
	switch {
	case p.terminal:
		fmt.Fprintf(p.w, "\r\x1b[K%s", text)
	case p.n%plainEvery == 1:
		fmt.Fprintln(p.w, text)
	}
}

func (p *progress) end() {
	if p.terminal && p.n > 0 {
		fmt.Fprintln(p.w)
	}
}

type loadCheckCmd struct {
	Scenario []string          `arg:"" help:"Files of scenarios." type:"existingfile"`
	Set      map[string]string `help:"Replace $${NAME} in the scenarios; may be repeated." placeholder:"NAME=TEXT"`
}

// Help is shown below the usage.
func (loadCheckCmd) Help() string {
	return "Examples:\n  leeway-lab load check scenarios/j1.yaml\n  leeway-lab load check --set host=127.0.0.1:8080 scenarios/viewers-*.yaml"
}

// Run checks every file.
func (c *loadCheckCmd) Run(s *Streams) error {
	var err error
	for _, file := range c.Scenario {
		if _, one := readScenario(file, c.Set); one != nil {
			err = errors.Join(err, one)
			continue
		}
		fmt.Fprintf(s.Stdout, "%s is fine\n", file)
	}
	if err != nil {
		return cmdline.Usage(err)
	}
	return nil
}
