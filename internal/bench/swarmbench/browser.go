package swarmbench

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/bench"
	"github.com/leeway-video/leeway/internal/netlab"
)

// pageAddress is where a viewer's browser finds the page: on loopback, because a page over plain HTTP from anywhere else
// is not a secure context and has no WebCrypto. What is behind it comes over the viewer's access line.
const pageAddress = "127.0.0.1:8080"

// browserFlags are a user's defaults but for what a machine without a window server, a GPU and a way to the world needs.
// Background throttling, mDNS names for addresses and local network access stay as users have them.
var browserFlags = []string{
	"--headless", "--no-sandbox", "--no-first-run", "--mute-audio", "--disable-gpu", "--disable-background-networking",
	"--disable-component-update", "--disable-sync", "--disable-quic",
}

// goodbye is how long a page that has been left may take for its last words.
const goodbye = time.Second

// browse has Chromium watch: the demo page by default flags, in the viewer's host.
func (s *stage) browse(ctx context.Context, host *netlab.Host, p Plan, peers bool) (Outcome, error) {
	listener, err := host.Listen(ctx, "tcp", pageAddress)
	if err != nil {
		return Outcome{}, err
	}
	proxy := newPage(host.DialContext, s.servers.address(publicPort), p.LeaveAfter)
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() { _ = server.Close(); <-served }()
	profile, err := os.MkdirTemp("", "leeway-bench-browser-")
	if err != nil {
		return Outcome{}, err
	}
	defer func() { _ = os.RemoveAll(profile) }()
	address := "http://" + pageAddress + "/?maxbuffer=30"
	if !peers {
		address += "&leeway=off"
	}
	cmd := host.Command(ctx, browserCommand(), slices.Concat(browserFlags, []string{"--user-data-dir=" + profile, address})...)
	text := &tail{}
	cmd.Stdout, cmd.Stderr = text, text
	cmd.Env = append(os.Environ(), "HOME="+profile)
	if err := cmd.Start(); err != nil {
		return Outcome{}, fmt.Errorf("start the browser: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	failed := false
	select {
	case <-proxy.told:
		bench.Pause(ctx, goodbye)
	case <-ctx.Done():
		failed = true
	case err := <-ended:
		return Outcome{}, fmt.Errorf("the browser ended by itself: %v\n%s", err, text)
	}
	_ = cmd.Cancel()
	<-ended
	proxy.mu.Lock()
	defer proxy.mu.Unlock()
	return proxy.last.outcome(p, failed), nil
}

// browserCommand is the Chromium that the machine has.
func browserCommand() string {
	if named := os.Getenv("LEEWAY_CHROMIUM"); named != "" {
		return named
	}
	return "chromium"
}
