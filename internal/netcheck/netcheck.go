// Package netcheck measures a line against a probe server (spec/probe.md), as `leeway probe run` does: download and upload by parallel
// ndt7 tests, responsiveness meanwhile, and loss, order and delay each way by data channels. Its twin for browsers is
// web/packages/netcheck.
package netcheck

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/wire/quality"
)

// Phase is a part of a check.
type Phase string

// The phases, in their order. Responsiveness, HTTP and Classes are run where they are asked for.
const (
	Baseline Phase = "baseline"
	Reach    Phase = "reach" // what is reached by UDP, and by which kind of NAT
	Download Phase = "download"
	Upload   Phase = "upload"
	HTTP     Phase = "http"
	// Responsiveness is that of requests on connections of HTTP/2 that are loaded.
	Responsiveness Phase = "responsiveness"
	Quality        Phase = "quality"
	Classes        Phase = "classes"
)

// phases are all, in their order.
var phases = []Phase{Baseline, Reach, Download, Upload, Responsiveness, HTTP, Quality, Classes}

// usual are those of a check that names none.
var usual = []Phase{Reach, Download, Upload, Quality}

// Bounds of a plan.
const (
	MaxStreams  = 64
	MinDuration = 2 * time.Second  // a server measures an upload each 0.6 s at the latest
	MaxDuration = 10 * time.Second // of a test by TCP: the server ends it then
	MaxMessages = quality.MaxMessages
	maxClasses  = 4
)

const (
	rampUpShare = 5 // a test's first part that counts for nothing but the baseline is one in so many
	idleTime    = 1500 * time.Millisecond
	idleEvery   = 150 * time.Millisecond
	patience    = 5 * time.Second
)

// Config of a check. Zero values take the defaults named.
type Config struct {
	URL      string // of the server: http or https, host and port
	Token    string
	TLS      *tls.Config   // nil: the system's roots
	Phases   []Phase       // Baseline is always run; reach, download, upload, quality, and classes with several marks; what gives way: download, upload
	Streams  int           // WebSockets of a TCP test; 4
	Duration time.Duration // of each phase; 10 s
	Messages int64         // of a stream of the quality test; 1,000
	DSCP     []int         // one marks all that is sent; several are the classes
	GivesWay bool          // download and upload leave the line to other traffic, and measure what that leaves
	// Progress hears what goes on, from goroutines of the check, one at a time.
	Progress func(Progress)

	idle time.Duration // of the baseline; 1.5 s
}

// Progress is what is seen of a check that runs.
type Progress struct {
	Phase      Phase
	Elapsed    time.Duration // of the phase
	Throughput float64       // bit/s, of the last moments; 0: not known
}

// PlanError says what of a Config is wrong.
type PlanError struct{ Text string }

// Error implements error.
func (e *PlanError) Error() string { return e.Text }

func (c *Config) complete() (*url.URL, error) {
	base, err := url.Parse(c.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, &PlanError{fmt.Sprintf("%q is no address of a server (such as https://probe.example.com:8090)", c.URL)}
	}
	if c.Phases == nil {
		c.Phases = slices.Clone(usual)
		if c.GivesWay {
			c.Phases = []Phase{Download, Upload}
		}
		if len(c.DSCP) > 1 {
			c.Phases = append(c.Phases, Classes)
		}
	}
	c.Streams = cmp.Or(c.Streams, 4)
	c.Duration = cmp.Or(c.Duration, MaxDuration)
	c.Messages = cmp.Or(c.Messages, 1000)
	if c.idle == 0 && slices.ContainsFunc(c.Phases, func(p Phase) bool { return p != Reach }) {
		c.idle = idleTime // reachability has no baseline
	}
	if c.Progress == nil {
		c.Progress = func(Progress) {}
	}
	switch {
	case c.Streams < 1 || c.Streams > MaxStreams:
		return nil, &PlanError{fmt.Sprintf("%d WebSockets: 1 to %d", c.Streams, MaxStreams)}
	case c.Duration < MinDuration || c.Duration > MaxDuration:
		return nil, &PlanError{fmt.Sprintf("a duration of %v: %v to %v", c.Duration, MinDuration, MaxDuration)}
	case c.Messages < 1 || c.Messages > MaxMessages:
		return nil, &PlanError{fmt.Sprintf("%d messages: 1 to %d", c.Messages, MaxMessages)}
	case len(c.DSCP) > maxClasses:
		return nil, &PlanError{fmt.Sprintf("%d classes: at most %d", len(c.DSCP), maxClasses)}
	case c.GivesWay && (len(c.DSCP) > 0 || slices.ContainsFunc(c.Phases, func(p Phase) bool { return p == Responsiveness || p == HTTP || p == Classes })):
		return nil, &PlanError{"phases responsiveness, http and classes, and marks, do not give way"}
	case base.Scheme != "https" && slices.Contains(c.Phases, Responsiveness):
		return nil, &PlanError{"responsiveness by requests needs HTTP/2, which servers speak by https alone"}
	case slices.Contains(c.Phases, Classes) && len(c.DSCP) == 0:
		return nil, &PlanError{"classes need their DSCP"}
	}
	for _, d := range c.DSCP {
		if d < 0 || d > quality.MaxDSCP {
			return nil, &PlanError{fmt.Sprintf("DSCP %d: 0 to %d", d, quality.MaxDSCP)}
		}
	}
	for _, p := range c.Phases {
		if !slices.Contains(phases, p) {
			return nil, &PlanError{fmt.Sprintf("phase %q: reach, download, upload, responsiveness, http, quality or classes", p)}
		}
	}
	return base, nil
}

// check is one that runs.
type check struct {
	Config
	server *server
	began  time.Time // of the phase
	phase  Phase
}

// Run checks a line. It ends within the time of its plan whatever the server does. What was measured is returned with an error, too: a
// *PlanError, or *Errors that say what is missing and why.
func Run(ctx context.Context, cfg Config) (*Results, error) {
	base, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	c := &check{Config: cfg, server: newServer(base, cfg.Token, cfg.TLS)}
	defer c.server.close()
	r := &Results{Version: 1, Server: base.Host, StartedMS: time.Now().UnixMilli(), Figures: []netstat.Figure{}}
	defer r.score()
	steps := map[Phase]func(context.Context, *Results) error{
		Baseline: c.baseline, Reach: c.reach, Download: c.down, Upload: c.up, Responsiveness: c.responsiveness, HTTP: c.http, Quality: c.quality, Classes: c.classes,
	}
	if c.GivesWay {
		steps[Download], steps[Upload] = c.freeDown, c.freeUp
	}
	var errs []error
	for _, p := range phases {
		if p != Baseline && !slices.Contains(cfg.Phases, p) {
			continue
		}
		c.phase, c.began = p, time.Now()
		c.Progress(Progress{Phase: p})
		err := steps[p](ctx, r)
		if err == nil {
			continue
		}
		e := asError(ctx, p, err)
		errs = append(errs, e)
		if e.ends() {
			break
		}
	}
	return r, errors.Join(errs...)
}

// baseline finds the server, and how soon it answers while nothing else goes on.
func (c *check) baseline(ctx context.Context, _ *Results) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.idle+2*patience, errSilent)
	defer cancel()
	most, err := c.server.info(ctx)
	if err != nil {
		return err
	}
	c.Streams = min(c.Streams, max(1, most))
	for tick := time.NewTicker(idleEvery); ; {
		if _, err := c.server.small(ctx); err != nil {
			return err
		}
		if time.Since(c.began) >= c.idle {
			tick.Stop()
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return context.Cause(ctx)
		}
	}
}
