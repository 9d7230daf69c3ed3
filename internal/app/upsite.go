package app

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"

	"github.com/leeway-video/leeway/internal/site"
)

// demoSite is the site of up's own film: hosts are what the public address is called by, and the seed fetches from a
// listener of its own, so that the ledger can tell it from viewers.
func demoSite(public net.Addr, seedOrigin string) (site.Config, error) {
	hosts, err := hostsOf(public)
	if err != nil {
		return site.Config{}, err
	}
	return site.Config{
		Name: "demo", Hosts: hosts, FetchBase: seedOrigin,
		// One viewer is enough to certify: the second window is then served at once. No control group among four tabs.
		Policy: site.Policy{CertifyFrom: 1, ControlGroupPermille: 0},
	}, nil
}

// hostsOf lists what browsers may call the address that was listened on, as they write it in a URL.
func hostsOf(public net.Addr) ([]string, error) {
	at, err := netip.ParseAddrPort(public.String())
	if err != nil {
		return nil, fmt.Errorf("up: read the public address: %w", err)
	}
	addrs := []netip.Addr{at.Addr().Unmap()}
	if at.Addr().IsUnspecified() {
		found, err := net.InterfaceAddrs()
		if err != nil {
			return nil, fmt.Errorf("up: list this machine's addresses: %w", err)
		}
		addrs = addrs[:0]
		for _, a := range found {
			if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLinkLocalUnicast() {
				addrs = append(addrs, p.Addr().Unmap())
			}
		}
	}
	var hosts []string
	for _, a := range addrs {
		hosts = append(hosts, hostPort(a.String(), at.Port()))
		if a.IsLoopback() && !slices.Contains(hosts, hostPort("localhost", at.Port())) {
			hosts = append(hosts, hostPort("localhost", at.Port()))
		}
	}
	return hosts[:min(len(hosts), 64)], nil // the limit of spec/site.md
}

// hostPort is host:port as a URL has it: IPv6 in brackets, http's own port left out.
func hostPort(host string, port uint16) string {
	joined := net.JoinHostPort(host, fmt.Sprint(port))
	if port == 80 {
		joined = joined[:len(joined)-len(":80")]
	}
	return joined
}

// shownAddress is what a person on this machine types to reach the address that was listened on.
func shownAddress(public net.Addr) string {
	hosts, err := hostsOf(public)
	if err != nil || len(hosts) == 0 {
		return public.String()
	}
	return hosts[0]
}

// loadSite reads a file that holds one site's configuration.
func loadSite(file string) (site.Config, error) {
	var c site.Config
	if _, err := loadFile(file, &c); err != nil {
		return c, &usageError{err}
	}
	if _, err := site.New(c); err != nil {
		return c, &usageError{fmt.Errorf("%s: %w", file, err)}
	}
	return c, nil
}

// scriptTag is what a page of a site on this machine carries. The scheme is left to the page.
func scriptTag(address string) string {
	return fmt.Sprintf(`<script async src="//%s/leeway.js" data-tracker="ws://%s/"></script>`, address, address)
}

// sitePage is the page of an up that serves a site of one's own: there is no film here to show.
func sitePage(name, address string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(w, "Leeway serves the site %q from here. Paste this into its page, beside hls.js:\n\n%s\n", name, scriptTag(address))
	})
}
