package app

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"github.com/leeway-video/leeway/internal/app/film"
	"github.com/leeway-video/leeway/internal/buildinfo"
	"github.com/leeway-video/leeway/internal/cmdline"
)

// cli is the command line. A flag that is not given is nil and leaves the configuration alone; `key` names the key that
// it overrides.
//
// Large: a field for each command.
type cli struct {
	Config    string  `help:"Configuration file (YAML)." placeholder:"FILE" type:"path" short:"c"`
	LogLevel  *string `help:"debug, info, warn or error." placeholder:"LEVEL" key:"log.level"`
	LogFormat *string `help:"text, json, or auto: text on a terminal." placeholder:"FORMAT" key:"log.format"`

	VersionFlag kong.VersionFlag `name:"version" help:"Print version and build."`

	Up       upCmd       `cmd:"" help:"Everything in one process: tracker, seed, origin, demo page."`
	Settings configCmd   `cmd:"" name:"config" help:"Check a configuration file, or print what is in force."`
	Tracker  trackerCmd  `cmd:"" help:"One tracker: WebSocket, introductions, signaling, statistics."`
	Seed     seedCmd     `cmd:"" help:"One seed, joined to trackers by NATS."`
	Turn     turnCmd     `cmd:"" help:"A TURN relay, for viewers that cannot reach each other directly."`
	Probe    probeCmd    `cmd:"" help:"Network check: a server that measures the line of a client."`
	Origin   originCmd   `cmd:"" help:"A web server with a film and the demo page, to try a tracker with."`
	Viewer   viewerCmd   `cmd:"" help:"A headless viewer: plays a film through a tracker and says how it went."`
	Doctor   doctorCmd   `cmd:"" help:"Say what is wrong with a set-up, and how to mend it."`
	Token    tokenCmd    `cmd:"" help:"Join tokens: keys, tokens, and what is wrong with one."`
	Purge    purgeCmd    `cmd:"" help:"Withdraw certificates below a path or of a key; take a film down."`
	Switch   switchCmd   `cmd:"" help:"Switch peer delivery of a site off, or on again, for every viewer."`
	Delivery deliveryCmd `cmd:"" help:"Show what viewers of a tracker receive, by site and by title, and why not from peers."`
	Certify  certifyCmd  `cmd:"" help:"Sign the segments of playlists where they are made, so that viewers share them before a seed has fetched them."`
	Film     filmCmd     `cmd:"" help:"Prepare the sample film, or one of yours, and print its folder."`
	Secret   secretCmd   `cmd:"" help:"Print a new secret, for any key of the configuration that takes one."`
	Version  versionCmd  `cmd:"" help:"Print version and build."`

	Completion cmdline.Completion `cmd:"" help:"Print what a shell needs to complete commands and flags."`

	Bench    movedCmd `cmd:"" hidden:""`
	Schedule movedCmd `cmd:"" hidden:""`
}

// run is what a command gets beside its own flags.
type run struct {
	env    Env
	flags  *cli
	serves bool // the command is a service, which goes on until it is told to end

	filed *Config        // what the file alone says, once it was loaded; nil: there is none
	lines map[string]int // of its keys
}

// movedCmd was a command of this program and is one of leeway-lab's now.
type movedCmd struct {
	Args []string `arg:"" optional:"" passthrough:"all"`
}

// Help is shown below the usage.
func (movedCmd) Help() string {
	return "This command is one of leeway-lab now; make build makes build/leeway-lab."
}

// Run names the command that does it.
func (movedCmd) Run(k *kong.Context) error {
	name := k.Selected().Name
	return cmdline.Usage(fmt.Errorf("there is no command %q any more: run leeway-lab %s (make build makes build/leeway-lab)", name, name))
}

type versionCmd struct {
	JSON bool `name:"json" help:"Print one JSON object."`
}

// Help is shown below the usage.
func (versionCmd) Help() string {
	return "Examples:\n  leeway version\n  leeway version --json"
}

// Run prints version and build.
func (c versionCmd) Run(r *run) error {
	if c.JSON {
		commit, changed := buildinfo.Commit()
		return printJSON(r, struct {
			Version  string `json:"version"`
			Commit   string `json:"commit"` // 12 digits; empty: not built from a clone
			Changed  bool   `json:"changed"`
			Go       string `json:"go"`
			Platform string `json:"platform"`
			Build    string `json:"build"`
		}{Version, commit, changed, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, buildinfo.Describe("leeway " + Version)})
	}
	_, err := fmt.Fprintln(r.env.Stdout, buildinfo.Describe("leeway "+Version))
	return err
}

type filmCmd struct {
	File    string        `arg:"" optional:"" help:"Video file; by default the sample film." type:"existingfile"`
	Segment time.Duration `help:"Length of segments: 2s, 4s or 6s." default:"4s"`
	CMAF    bool          `help:"Package it as CMAF for HLS and DASH, too, as the demo serves it, and print that folder." name:"cmaf"`
}

// Help is shown below the usage.
func (filmCmd) Help() string {
	return "Examples:\n  leeway film\n  leeway film --segment 2s holiday.mp4\n  leeway film --cmaf"
}

// Run prepares the film.
func (c filmCmd) Run(ctx context.Context, r *run) error {
	if !slices.Contains(segmentLengths, c.Segment) {
		return cmdline.Usage(fmt.Errorf("film: --segment %s is no choice (one of %v)", c.Segment, segmentLengths))
	}
	seconds := int(c.Segment / time.Second)
	dir, err := prepareFilm(ctx, r.env, c.File, seconds)
	if err != nil {
		return err
	}
	if c.CMAF {
		options, err := filmOptions(r.env, seconds)
		if err != nil {
			return err
		}
		if dir, err = film.PrepareCMAF(ctx, dir, options); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(r.env.Stdout, dir)
	return err
}
