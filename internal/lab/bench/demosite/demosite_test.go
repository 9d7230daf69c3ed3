package demosite

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// Browsers and headless viewers of a bench are one swarm, whatever the demo's page plays by itself.
func TestPagesPlayWhatHeadlessViewersPlay(t *testing.T) {
	for _, film := range []string{Film, Stream} {
		s := &Site{Addr: netip.MustParseAddr("192.0.2.1"), film: film}
		query, err := url.ParseQuery(s.Page())
		if err != nil || len(query) != 1 || s.Manifest() != "http://192.0.2.1:8080"+query.Get("src") {
			t.Errorf("the page plays %v, viewers %s: %v", query, s.Manifest(), err)
		}
		if !strings.HasSuffix(s.Manifest(), "/master.m3u8") {
			t.Errorf("%s is no master playlist", s.Manifest())
		}
	}
}
