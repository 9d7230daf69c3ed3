package app

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/site"
)

// demoSite is the site of up's own film: hosts are what the public address is called by, and the seed fetches from a
// listener of its own, so that the ledger can tell it from viewers.
func demoSite(public place, seedOrigin string) (site.Config, error) {
	hosts, err := public.hosts()
	if err != nil {
		return site.Config{}, err
	}
	return site.Config{
		Name: "demo", Hosts: hosts, FetchBase: seedOrigin,
		// A page may use any title for the demo's films: all of them are public.
		Title: site.Titles{Explicit: []site.Binding{{Title: "{}", Manifests: []string{"/*"}}}},
		// One viewer is enough to certify: the second window is then served at once. Two viewers cost more than they save, and the demo
		// is to show them sharing.
		Policy: site.Policy{CertifyFrom: 1, CostlyTitles: site.CostlyShare},
	}, nil
}

// place is where browsers reach the public port.
type place struct {
	addr        net.Addr
	certificate *pair // nil: no TLS
}

// hosts lists what browsers may call the place, as they write it in a URL: the certificate's names before addresses.
func (p place) hosts() ([]string, error) {
	at, err := netip.ParseAddrPort(p.addr.String())
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
	names := p.certificate.names()
	for _, a := range addrs {
		names = append(names, a.String())
		if a.IsLoopback() {
			names = append(names, "localhost")
		}
	}
	var hosts []string
	for _, name := range names {
		if host := p.host(name, at.Port()); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts[:min(len(hosts), 64)], nil // the limit of spec/site.md
}

// host is name:port as a URL has it: IPv6 in brackets, the scheme's own port left out.
func (p place) host(name string, port uint16) string {
	own := uint16(80)
	if p.certificate != nil {
		own = 443
	}
	joined := net.JoinHostPort(name, fmt.Sprint(port))
	if port == own {
		joined = strings.TrimSuffix(joined, fmt.Sprintf(":%d", own))
	}
	return joined
}

// shown is what a person types to reach the place.
func (p place) shown() string {
	hosts, err := p.hosts()
	if err != nil || len(hosts) == 0 {
		return p.addr.String()
	}
	return hosts[0]
}

// url is where the page is.
func (p place) url() string { return p.scheme() + "://" + p.shown() + "/" }

// scheme is the page's.
func (p place) scheme() string {
	if p.certificate != nil {
		return "https"
	}
	return "http"
}

// otherMachines is where browsers on other machines find the place, addresses with spaces between them; "loopback": nowhere.
func (p place) otherMachines() (string, error) {
	if loopback(p.addr.String()) {
		return "loopback", nil
	}
	hosts, err := p.hosts()
	if err != nil {
		return "", err
	}
	var all []string
	for _, host := range hosts {
		if !loopback(host) && !loopback(net.JoinHostPort(host, "0")) {
			all = append(all, p.scheme()+"://"+host+"/")
		}
	}
	return strings.Join(all, " "), nil
}

// scriptTag is what a page of a site carries. The script's scheme is left to the page; the tracker has its own.
func (p place) scriptTag() string {
	scheme := "ws"
	if p.certificate != nil {
		scheme = "wss"
	}
	return fmt.Sprintf(`<script async crossorigin src="//%s/leeway.js" data-tracker="%s://%s/"></script>`, p.shown(), scheme, p.shown())
}

// loadSite reads a file that holds one site's configuration.
func loadSite(file string, env Env) (site.Config, error) {
	var c site.Config
	c.Preset()
	if _, err := loadFile(file, &c, env); err != nil {
		return c, cmdline.Usage(err)
	}
	if _, err := site.New(c); err != nil {
		return c, cmdline.Usage(fmt.Errorf("%s: %w", file, err))
	}
	return c, nil
}

// sitePage is the page of an up that serves a site of one's own: there is no film here to show.
func sitePage(name string, public place) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(w, "Leeway serves the site %q from here. Paste this into its page, beside the player:\n\n%s\n", name, public.scriptTag())
	})
}
