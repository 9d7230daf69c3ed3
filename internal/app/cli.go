package app

import (
	"context"
	"fmt"
)

// cli is the command line. A flag that is not given is nil and leaves the configuration alone; `key` names the key that
// it overrides.
type cli struct {
	Config    string  `help:"Configuration file (YAML)." placeholder:"FILE" type:"path" short:"c"`
	LogLevel  *string `help:"debug, info, warn or error." placeholder:"LEVEL" key:"log.level"`
	LogFormat *string `help:"text, json, or auto: text on a terminal." placeholder:"FORMAT" key:"log.format"`

	Up       upCmd       `cmd:"" help:"Everything in one process: tracker, seed, origin, demo page."`
	Settings configCmd   `cmd:"" name:"config" help:"Check a configuration file, or print what is in force."`
	Tracker  trackerCmd  `cmd:"" help:"One tracker: WebSocket, introductions, signaling, statistics."`
	Seed     seedCmd     `cmd:"" help:"One seed, joined to trackers by NATS."`
	Turn     turnCmd     `cmd:"" help:"A TURN relay, for viewers who cannot reach each other directly."`
	Origin   originCmd   `cmd:"" help:"A film and its page, where there is no site yet to try a tracker with."`
	Viewer   viewerCmd   `cmd:"" help:"A headless viewer: plays a film through a tracker and says how it went."`
	Schedule scheduleCmd `cmd:"" help:"Decide again what a viewer recorded."`
	Token    tokenCmd    `cmd:"" help:"Join tokens: keys, tokens, and what is wrong with one."`
	Purge    purgeCmd    `cmd:"" help:"Withdraw what was certified below a path, or by a key; take a film down."`
	Switch   switchCmd   `cmd:"" help:"Switch peer delivery of a site off, or on again, for every viewer."`
	Film     filmCmd     `cmd:"" help:"Prepare the sample film, or one of yours, and print its folder."`
	Bench    benchCmd    `cmd:"" help:"Measure, and compare with baselines of the same run."`
	Version  versionCmd  `cmd:"" help:"Print version and build."`

	BenchChild benchChildCmd `cmd:"" hidden:"" name:"bench-child"`
}

// run is what a command gets beside its own flags.
type run struct {
	env   Env
	flags *cli
}

type versionCmd struct{}

// Run prints version and build.
func (versionCmd) Run(r *run) error {
	_, err := fmt.Fprintln(r.env.Stdout, buildInfo())
	return err
}

type filmCmd struct {
	File string `arg:"" optional:"" help:"Video file; the sample film when left out." type:"existingfile"`
}

// Help is shown below the usage.
func (filmCmd) Help() string {
	return "Examples:\n  leeway film\n  leeway film holiday.mp4"
}

// Run prepares the film.
func (c filmCmd) Run(ctx context.Context, r *run) error {
	dir, err := prepareFilm(ctx, r.env, c.File)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(r.env.Stdout, dir)
	return err
}
