package app

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/metric"
)

// The admin port's token in the data folder, readable by its owner alone.
const (
	tokenFile     = "admin-token"
	minAdminToken = 32 // characters
)

var refusedAdminMetric = &metric.Def{
	Name: "leeway_admin_refused_requests_total", Help: "Requests to the admin port that were refused", Kind: metric.Counter,
	Labels: []metric.Label{{Name: "reason", Values: []string{"host", "token"}}},
}

// adminGate is what the admin port asks of a request. The Host of a request has to be a name that no stranger can point at
// this machine. Otherwise a page in a browser that reaches the port could read from it and send requests (DNS rebinding). Requests
// that change something, or show more than figures, need a token.
type adminGate struct {
	hosts   map[string]bool // names, in lower case
	token   []byte          // SHA-256; nil: there is none, and what needs one is refused
	where   string          // the token is kept, for the error message
	metrics metric.Sink
}

// openAdminGate takes the token from the configuration, or from its file, which it makes when it is missing. dir is the data folder;
// empty: the service has none.
func openAdminGate(c AdminConfig, dir, listen string, metrics metric.Sink, log *slog.Logger) (*adminGate, error) {
	g := &adminGate{hosts: map[string]bool{"localhost": true}, metrics: metrics}
	for _, name := range c.Hosts {
		g.hosts[strings.ToLower(name)] = true
	}
	if host, _, err := net.SplitHostPort(listen); err == nil && host != "" {
		g.hosts[strings.ToLower(host)] = true
	}
	text := c.Token
	file := c.TokenFile
	if file == "" && dir != "" {
		file = filepath.Join(dir, tokenFile)
	}
	switch {
	case text != "":
		g.where = "admin.token (LEEWAY_ADMIN_TOKEN)"
	case file != "":
		kept, err := keep(filepath.Dir(file), filepath.Base(file), newAdminToken)
		if err != nil && c.TokenFile == "" { // a service that is told all else by its environment may have no folder to write to
			log.Warn("the admin port has no token and refuses purge, switch and pprof", "error", err, "hint", "set admin.token (LEEWAY_ADMIN_TOKEN), or admin.token_file to a file that can be written")
			return g, nil
		}
		if err != nil {
			return nil, fmt.Errorf("admin token: %w", err)
		}
		text, g.where = strings.TrimSpace(string(kept)), file
		if len(text) < minAdminToken {
			return nil, cmdline.Usage(fmt.Errorf("admin token: %s holds fewer than %d characters (remove it and a new one is made)", file, minAdminToken))
		}
	default:
		return g, nil
	}
	sum := sha256.Sum256([]byte(text))
	g.token = sum[:]
	return g, nil
}

func newAdminToken() ([]byte, error) {
	secret, err := newSecret()
	return []byte(secret + "\n"), err
}

// named lets through what asks by an IP address, by localhost, by the name that is listened on or by one of admin.hosts.
func (g *adminGate) named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		host = strings.ToLower(host)
		if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err != nil && !g.hosts[host] {
			g.metrics.Add(refusedAdminMetric, 1, "host")
			http.Error(w, fmt.Sprintf("The admin port is not called %.100q. Ask by IP address or localhost, or add the name to admin.hosts (LEEWAY_ADMIN_HOSTS).", host), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// keyed lets through what shows the token, as a bearer or as the password of any user.
func (g *adminGate) keyed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if g.opens(r) {
			next(w, r)
			return
		}
		g.metrics.Add(refusedAdminMetric, 1, "token")
		w.Header().Add("WWW-Authenticate", `Bearer realm="leeway admin"`)
		w.Header().Add("WWW-Authenticate", `Basic realm="leeway admin"`)
		text := "This needs the token of this process: " + g.where + " there. Give it as LEEWAY_ADMIN_TOKEN or by --admin-token-file."
		if g.token == nil {
			text = "This needs a token, and this process has none: start it with admin.token (LEEWAY_ADMIN_TOKEN) or admin.token_file."
		}
		http.Error(w, text, http.StatusUnauthorized)
	}
}

func (g *adminGate) opens(r *http.Request) bool {
	shown, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer {
		_, shown, _ = r.BasicAuth()
	}
	sum := sha256.Sum256([]byte(shown))
	return g.token != nil && subtle.ConstantTimeCompare(sum[:], g.token) == 1
}
