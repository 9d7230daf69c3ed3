package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/doctor"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/rtclink"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/webrtcend"
)

// doctorCmd is `leeway doctor`.
type doctorCmd struct {
	URL        string `arg:"" optional:"" help:"Manifest of a film or stream of the site."`
	Tracker    string `help:"Tracker; by default the manifest's host." placeholder:"URL"`
	PageOrigin string `help:"Origin of the page with the player; by default the manifest's." placeholder:"ORIGIN"`
	Site       string `help:"Name of the site, if the page's origin does not determine it." placeholder:"NAME"`
	Title      string `help:"Explicit title." placeholder:"TITLE"`
	Token      string `help:"Join token." env:"LEEWAY_VIEWER_TOKEN" placeholder:"TOKEN" xor:"token"`
	TokenFile  string `help:"File with the join token." placeholder:"FILE" xor:"token"`
	AdminPort  string `help:"Port on which the tracker's admin port would be, and should not answer." default:"9464" placeholder:"PORT"`
	JSON       bool   `name:"json" help:"Print one JSON object."`
}

// Help is shown below the usage.
func (doctorCmd) Help() string {
	return `Looks at a site as a viewer does: manifest, segments, tracker, join, seed, relays, a link and a first verified piece. With --config FILE, on
the machine of the services, also at what only that tells: the configuration, NATS, the origin as the seed fetches from it, the kernel's limits.
Each line says what was seen; a line that is not ok says what to do. Exits with 0 when nothing is an error, with 1 otherwise, with 2 when
it was called wrongly. It takes some seconds, and half a minute at most. The codes are in docs/operations/troubleshooting.md.

Examples:
  leeway doctor http://127.0.0.1:8080/media/bbb/master.m3u8
  leeway doctor --tracker wss://tracker.example.com --page-origin https://www.example.com https://media.example.com/film/master.m3u8
  leeway doctor --config leeway.yaml --tracker wss://tracker.example.com https://media.example.com/film/master.m3u8
  leeway doctor --json --tracker wss://tracker.example.com`
}

// Run examines.
func (c *doctorCmd) Run(ctx context.Context, r *run) error {
	cfg, err := c.config(r)
	if err != nil {
		return cmdline.Usage(fmt.Errorf("doctor: %w", err))
	}
	if file := r.file(); file != "" {
		local, done, err := r.examined(file)
		if err != nil {
			return cmdline.Usage(fmt.Errorf("doctor: %w", err))
		}
		defer done()
		cfg.Local = local
	}
	if cfg.Local == nil && cfg.Manifest == "" && cfg.Tracker == "" {
		return cmdline.Usage(errors.New("doctor: nothing to look at (give a manifest's URL, --tracker or --config FILE)"))
	}
	heard := func(f doctor.Finding) {
		if ctx.Err() == nil { // what an interrupt cut short says nothing of the set-up
			tell(r.env, f)
		}
	}
	if c.JSON {
		heard = nil
	}
	report := doctor.Examine(ctx, cfg, heard)
	if ctx.Err() != nil {
		return errors.New("doctor: interrupted")
	}
	if c.JSON {
		if err := printJSON(r, report); err != nil {
			return err
		}
	}
	if report.Healthy {
		return nil
	}
	n := 0
	for _, f := range report.Findings {
		if f.Status == doctor.Fail {
			n++
		}
	}
	return fmt.Errorf("doctor: %d %s", n, plural(n, "error"))
}

func (c *doctorCmd) config(r *run) (doctor.Config, error) {
	cfg := doctor.Config{
		Manifest: c.URL, PageOrigin: strings.TrimSuffix(c.PageOrigin, "/"), Site: c.Site, Title: c.Title, Token: c.Token, AdminPort: c.AdminPort,
		Client: "leeway-doctor/" + Version, Log: slog.New(slog.DiscardHandler),
	}
	at, err := url.Parse(c.URL)
	if c.URL != "" && (err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https") {
		return cfg, fmt.Errorf("%q is no http or https URL of a manifest", c.URL)
	}
	if p, err := url.Parse(cfg.PageOrigin); cfg.PageOrigin != "" && (err != nil || p.Host == "" || p.Path != "") {
		return cfg, fmt.Errorf("--page-origin %q is no origin (such as https://www.example.com)", c.PageOrigin)
	}
	if c.Tracker != "" || c.URL != "" {
		if cfg.Tracker, err = trackerURL(c.Tracker, at); err != nil {
			return cfg, err
		}
	}
	if c.TokenFile != "" {
		text, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return cfg, fmt.Errorf("--token-file: %w", err)
		}
		cfg.Token = strings.TrimSpace(string(text))
	}
	return cfg, nil
}

// marks are the words of a line, and their colors on a terminal.
var marks = map[doctor.Status][2]string{
	doctor.OK: {"ok", "\x1b[32m"}, doctor.Warn: {"warning", "\x1b[33m"}, doctor.Fail: {"error", "\x1b[31m"}, doctor.Skip: {"skipped", "\x1b[90m"},
}

// tell prints a finding: what was seen, and below it what to do.
func tell(env Env, f doctor.Finding) {
	word, color := marks[f.Status][0], marks[f.Status][1]
	mark := fmt.Sprintf("%-8s", word)
	if env.Colors {
		mark = color + mark + "\x1b[0m"
	}
	code := ""
	if f.Code != "ok" && f.Code != string(doctor.Skip) {
		code = " [" + f.Code + "]"
	}
	fmt.Fprintf(env.Stdout, "%s %-9s %s%s\n", mark, f.Check, f.Text, code)
	if f.Fix != "" {
		fmt.Fprintf(env.Stdout, "%18s fix: %s\n", "", f.Fix)
	}
}

// examined reads a configuration for an examination, as far as it can be read. done lets go of what was opened.
func (r *run) examined(file string) (local *doctor.Local, done func(), err error) {
	config := defaults(r.env.Getenv)
	lines, err := loadFile(file, config, r.env)
	if lines == nil && err != nil {
		return nil, nil, err
	}
	if _, wrong := loadEnviron(r.env.Environ, config); wrong != nil {
		return nil, nil, cmdline.Usage(wrong)
	}
	local = &doctor.Local{Admins: map[string]string{}, Want: webrtcend.SocketBuffer, Sessions: config.Tracker.MaxSessions + spareFiles,
		Files: func(ctx context.Context) (uint64, string) { return openFiles(ctx, config.Tracker.Admin) }}
	var found problems
	if errors.As(located(file, config, lines, err, nil), &found) {
		for _, p := range found {
			local.Problems = append(local.Problems, p.Error())
		}
	}
	local.Buffers = func() (read, write int, err error) {
		host, err := rtclink.Listen(rtclink.Config{Listen: "127.0.0.1:0"})
		if err != nil {
			return 0, 0, err
		}
		b := host.Buffers()
		return b.Read, b.Write, host.Close()
	}
	if config.NATS.URL != "" {
		local.Bus = config.NATS.joins
	}
	for _, a := range config.addresses() {
		if strings.HasSuffix(a.key, ".admin") && lines[a.key] > 0 {
			local.Admins[a.key] = a.value
		}
	}
	for i, s := range config.Tracker.ICEServers {
		if s.Secret != "" && len(config.Turn.Secrets) > 0 && !slices.Contains(config.Turn.Secrets, s.Secret) {
			local.Secrets = append(local.Secrets, fmt.Sprintf("tracker.ice_servers[%d].secret", i))
		}
	}
	return local, examinedOrigins(local, config), nil
}

// examinedOrigins opens the origins of all sites that are right, as a seed does.
func examinedOrigins(local *doctor.Local, config *Config) (done func()) {
	var clients []func()
	for _, c := range config.Sites {
		s, err := site.New(c)
		if err != nil || c.FetchBase == "" { // what is wrong with a site is among the problems
			continue
		}
		served, closeAll, err := seedParts{config: config.Seed, sites: []*site.Site{s}, log: slog.New(slog.DiscardHandler)}.origins()
		if err != nil {
			local.Origins = append(local.Origins, doctor.Origin{Site: s, Base: c.FetchBase, Closed: err})
			continue
		}
		clients = append(clients, closeAll)
		local.Origins = append(local.Origins, doctor.Origin{Site: s, Base: c.FetchBase, Origin: served[0].Origin})
	}
	return func() {
		for _, closeAll := range clients {
			closeAll()
		}
	}
}

// joins joins NATS and leaves it again. An attempt to connect takes up to 2 s a server and knows no context: joins does not wait for it
// when ctx ends.
func (c NATSConfig) joins(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() {
		bus, err := openBus(c, "doctor", metric.Discard, slog.New(slog.DiscardHandler), nil)
		if err == nil {
			err = bus.Close()
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return errors.New("the servers of nats.url do not answer in time")
	}
}
