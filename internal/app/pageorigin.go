package app

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// loggedOrigin is as much of an origin as the log takes: the longest host name and some more.
const loggedOrigin = 300

// pageOrigin lets pages of the tracker's sites in, and programs, which send no Origin and could send any. A browser tells a page
// that was refused nothing but that the socket did not open: the log is where its developer finds out. At most once a minute,
// for any client can write an origin.
func pageOrigin(allows func(origin string) bool, log *slog.Logger) func(*http.Request) bool {
	now := rate.Sometimes{Interval: time.Minute}
	return func(r *http.Request) bool {
		origin := askedOrigin(r)
		if origin == "" || allows(origin) {
			return true
		}
		now.Do(func() {
			log.Info("a page was refused: its origin is neither among the hosts nor the page_origins of a site", "origin", origin[:min(len(origin), loggedOrigin)])
		})
		return false
	}
}

// askedOrigin is the origin of the page that opens a socket. The tracker's own page /doctor asks as a page of another origin, which it
// names by ?page=. Only pages of the tracker's own host may: a browser gives no other page that Origin.
func askedOrigin(r *http.Request) string {
	origin, page := r.Header.Get("Origin"), r.URL.Query().Get("page")
	if !isOrigin(page) {
		return origin
	}
	if u, err := url.Parse(origin); err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
		return origin
	}
	return page
}
