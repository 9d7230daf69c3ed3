package tracker

import (
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/access"
	configured "github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

const (
	freeTitle    = "free-trailer"
	freeManifest = "/trailers/free/master.m3u8"
	paidManifest = "/premium/film/master.m3u8"
)

// joins asks for a title with a manifest; the answer is the code of an error, empty where the join was taken.
func (v *viewer) joins(title, manifest string) *signal.Error {
	v.t.Helper()
	v.send(&signal.Join{Request: 7, Title: title, Manifest: manifest, Role: "full", Want: 8})
	for {
		switch m := v.next().(type) {
		case *signal.Joined:
			return nil
		case *signal.Error:
			return m
		}
	}
}

// TestATokenOfOneTitleServesNoOther: a token for a free title, joined with the manifest of a film that is paid for, is refused, and
// no seed is told of that manifest. With its own manifest the title is joined: by the token's word, or by the site's.
func TestATokenOfOneTitleServesNoOther(t *testing.T) {
	bindings := configured.Titles{Explicit: []configured.Binding{{Title: "trailer-{}", Manifests: []string{"/trailers/{}/*"}}}}
	w, n, b := guarded(t, func(c *Config) {
		c.Sites = oneSite(t, configured.Config{Access: configured.AccessToken, Title: bindings})
	}, configured.Policy{})
	seed, told := w.seed()
	testkit.Eventually(t, "the seed is known", func() bool { return n.roster.serves(seed) })
	key := b.key(access.EdDSA, "one")
	for _, c := range []struct {
		name            string
		claims          access.Claims
		title, manifest string
		taken           bool
	}{
		{"another manifest", access.Claims{Titles: []string{freeTitle}}, freeTitle, paidManifest, false},
		{"no word on manifests", access.Claims{Titles: []string{freeTitle}}, freeTitle, freeManifest, false},
		{"a token that names another", access.Claims{Titles: []string{freeTitle}, Manifests: []string{"/trailers/free/*"}}, freeTitle, paidManifest, false},
		{"a token for every title", access.Claims{}, freeTitle, paidManifest, false},
		{"a title that the site binds to another", access.Claims{Titles: []string{"trailer-*"}}, "trailer-7", paidManifest, false},
		{"a title of the title rule, another manifest", access.Claims{Titles: []string{"/trailers/*"}}, "/trailers/free", paidManifest, false},
		{"a title of the title rule, whatever the token names", access.Claims{Titles: []string{"/trailers/*"}, Manifests: []string{"/*"}}, "/trailers/free", paidManifest, false},
		{"a manifest that the token leaves out", access.Claims{Manifests: []string{"/trailers/*"}}, "/premium/film", paidManifest, false},
		{"as the token says", access.Claims{Titles: []string{freeTitle}, Manifests: []string{"/trailers/free/*"}}, freeTitle, freeManifest, true},
		{"as the site says", access.Claims{Titles: []string{"trailer-*"}}, "trailer-7", "/trailers/7/manifest.mpd", true},
		{"as the title rule says", access.Claims{Titles: []string{"/trailers/*"}}, "/trailers/free", freeManifest, true},
		{"without a manifest", access.Claims{Titles: []string{freeTitle}}, freeTitle, "", true},
	} {
		v, _ := n.enter(b.token(key, c.claims), "")
		e := v.joins(c.title, c.manifest)
		if (e == nil) != c.taken || e != nil && (e.Code != "bad-title" || e.Hint == "") {
			t.Errorf("%s: %+v", c.name, e)
		}
		for served := !c.taken || c.manifest == ""; !served; {
			m := receive(t, told).Title
			served = m.Title == c.title && m.Manifest == c.manifest
			if m.Manifest == paidManifest {
				t.Fatalf("%s: the seed is told to serve %s as %s", c.name, m.Manifest, m.Title)
			}
		}
	}
	if got := w.metrics.Value(defTokens, string(access.OtherManifest)); got != 6 {
		t.Errorf("%v joins are counted that brought a manifest which their token does not name", got)
	}
}

// TestARenewalKeepsManifests: another token has to name what the session has joined with the one before.
func TestARenewalKeepsManifests(t *testing.T) {
	_, n, b := guarded(t, nil, configured.Policy{})
	key := b.key(access.EdDSA, "one")
	v, _ := n.enter(b.token(key, access.Claims{Titles: []string{freeTitle}, Manifests: []string{freeManifest}}), "")
	if e := v.joins(freeTitle, freeManifest); e != nil {
		t.Fatalf("%+v", e)
	}
	v.send(&signal.Token{Request: 5, Token: b.token(key, access.Claims{Titles: []string{freeTitle}, Manifests: []string{"/other/*"}})})
	if e := expect[*signal.Error](v); e.Code != "bad-token" || e.Request != 5 || !strings.Contains(e.Message, "manifest") {
		t.Errorf("%+v", e)
	}
	v.send(&signal.Token{Request: 6, Token: b.token(key, access.Claims{Titles: []string{freeTitle}, Manifests: []string{"/trailers/*"}})})
	expect[*signal.Granted](v)
}

// TestAnOpenSiteBindsExplicitTitles: what the site's configuration does not bind is refused where any viewer may join, too, and the
// hint says what to write.
func TestAnOpenSiteBindsExplicitTitles(t *testing.T) {
	w := newWorld(t)
	n := w.tracker(nil)
	e := n.viewer("").joins("bbb", testManifest)
	if e == nil || e.Code != "bad-title" || !strings.Contains(e.Hint, "title.explicit") {
		t.Errorf("%+v", e)
	}
	bound := w.tracker(func(c *Config) {
		c.Sites = oneSite(t, configured.Config{Title: configured.Titles{Explicit: []configured.Binding{{Title: "{}", Manifests: []string{"/media/{}/*"}}}}})
	})
	v := bound.viewer("")
	for _, manifest := range []string{testManifest, "/media/bbb/manifest.mpd"} {
		if e := v.joins("bbb", manifest); e != nil {
			t.Errorf("%s: %+v", manifest, e)
		}
	}
	if e := v.joins("bbb", "/media/other/master.m3u8"); e == nil || e.Code != "bad-title" {
		t.Errorf("%+v", e)
	}
}
