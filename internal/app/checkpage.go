package app

import (
	"fmt"
	"net"
	"net/http"

	"github.com/leeway-video/leeway/internal/probe"
	"github.com/leeway-video/leeway/internal/webdist"
)

// withCheckPage adds the page of the network check to a probe server.
func withCheckPage(tests *probe.Server) (http.Handler, error) {
	page, err := checkPage("")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/check", probe.Page(tests, page))
	mux.Handle("/{$}", probe.Page(tests, http.RedirectHandler("check", http.StatusFound)))
	mux.Handle("/", tests)
	return mux, nil
}

// checkPage is the page of the network check, whose tests are at server: as webdist.Check has it.
func checkPage(server string) (http.Handler, error) {
	bundle, err := webdist.Load()
	if err != nil {
		return nil, fmt.Errorf("probe: read the embedded bundle: %w", err)
	}
	return bundle.Check(server)
}

// checkPageOf is the page for another port of the host.
func checkPageOf(probe net.Addr) (http.Handler, error) {
	_, port, err := net.SplitHostPort(probe.String())
	if err != nil {
		return nil, fmt.Errorf("up: read the address of the probe: %w", err)
	}
	return checkPage(":" + port)
}
