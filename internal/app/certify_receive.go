package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/ingest"
	"github.com/leeway-video/leeway/internal/packaging"
)

// receivesHere refuses addresses that other machines reach: the receiver asks for no password.
func (c *certifyCmd) receivesHere() error {
	at, err := netip.ParseAddrPort(c.Receive)
	if c.Receive == "" || err == nil && at.Addr().IsLoopback() {
		return nil
	}
	return cmdline.Usage(fmt.Errorf("certify: --receive %s: it takes files from every program that reaches it, so name a loopback address, such as 127.0.0.1:8090 (for a packager on another machine put a web server with TLS and a password before it)", c.Receive))
}

// receive signs what a packager pushes, until it is interrupted. Uploads that are under way then get a moment.
func (c *certifyCmd) receive(ctx context.Context, r *run, p *packaging.Packager) error {
	if _, err := p.Playlists(); err != nil { // removes what an interrupted run left
		fmt.Fprintf(r.env.Stderr, "certify: %v\n", err)
	}
	l, err := listenTCP(ctx, "certify: --receive", c.Receive, false)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.env.Stderr, "certify: taking files by PUT at http://%s/ into %s\n", l.Addr(), c.Target)
	s := newServers(slog.New(slog.DiscardHandler))
	s.serve("certify", l, ingest.New(p, func(file string, plan *packaging.Plan, err error) {
		if err == nil {
			err = told(r, plan)
		}
		if err != nil {
			fmt.Fprintln(r.env.Stderr, err)
		}
	}))
	defer s.stop()
	return s.wait(ctx)
}
