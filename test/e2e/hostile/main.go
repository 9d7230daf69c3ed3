// Command hostile is a viewer that does not keep to the rules: it joins a swarm like any other, announces the whole film and
// then misbehaves in one chosen way, so that the end-to-end tests see what honest viewers make of it. It prints what
// happened as JSON lines and ends after --for.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	tracker, origin, site, title, manifest, playlist, behave string
	lf                                                       bool
	duration                                                 time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.tracker, "tracker", "", "tracker's address, ws://host:port/")
	flag.StringVar(&o.origin, "origin", "", "Origin header of the handshake")
	flag.StringVar(&o.site, "site", "demo", "site")
	flag.StringVar(&o.title, "title", "", "title to join")
	flag.StringVar(&o.manifest, "manifest", "", "manifest's key")
	flag.StringVar(&o.playlist, "playlist", "", "URL of the media playlist whose segments are announced")
	flag.StringVar(&o.behave, "behave", "", strings.Join(behaviors, " | "))
	flag.BoolVar(&o.lf, "lf", false, "descriptions with lines that end with LF, and private addresses")
	flag.DurationVar(&o.duration, "for", 20*time.Second, "how long")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if !slices.Contains(behaviors, o.behave) {
		return fmt.Errorf("hostile: --behave %q: one of %s", o.behave, strings.Join(behaviors, ", "))
	}
	ctx, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()
	f, err := loadFilm(ctx, o.site, o.playlist)
	if err != nil {
		return err
	}
	return join(ctx, o, f, notes())
}

// notes returns a function that prints one event a line; it may be called from any goroutine.
func notes() func(event string, detail any) {
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	return func(event string, detail any) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(map[string]any{"event": event, "detail": detail})
	}
}
