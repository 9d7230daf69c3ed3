package app

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// maxAskedOrigin bounds an origin that is asked about, bytes: the longest host name and some more.
const maxAskedOrigin = 300

// allowed says whether pages of an origin may join, which a browser does not tell a page that was refused. The origin is that of the
// page that asks, or the parameter. It says no more than a join with that origin would, and costs as much of the address's budget.
func allowed(allows func(origin string) bool, client func(*http.Request) netip.Addr, knock func(netip.Addr) bool, rejected func(reason string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("X-Content-Type-Options", "nosniff")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "Ask with GET.", http.StatusMethodNotAllowed)
			return
		}
		if !knock(client(r)) {
			rejected("rate")
			http.Error(w, "Too many questions of this address; ask again in a second.", http.StatusTooManyRequests)
			return
		}
		origin := r.URL.Query().Get("origin")
		if origin == "" {
			origin = r.Header.Get("Origin")
		}
		if !isOrigin(origin) {
			http.Error(w, "Ask for the origin of a page: /allowed?origin=https://www.example.com", http.StatusBadRequest)
			return
		}
		if allows(origin) {
			_, _ = fmt.Fprintf(w, "allowed: pages of %s may join.\n", origin)
			return
		}
		_, _ = io.WriteString(w, "refused: pages of "+origin+" may not join. Add the origin to page_origins of the site.\n")
	})
}

// isOrigin says whether a text is an origin as browsers write it.
func isOrigin(s string) bool {
	if len(s) > maxAskedOrigin {
		return false
	}
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.Scheme+"://"+u.Host == s && !strings.ContainsFunc(u.Host, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune(".-_:[]", r)
	})
}
