package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/viewer"
)

// TestWhatNoPieceMeans: without a link, with links to other viewers alone, and with one to a seed that certifies nothing.
func TestWhatNoPieceMeans(t *testing.T) {
	for _, c := range []struct {
		linked []map[string]int
		opened int
		code   string
		fix    string
	}{
		{[]map[string]int{nil, nil}, 0, "link-none", "UDP port (4600)"},
		{[]map[string]int{{"viewer/direct": 1}, {"viewer/direct": 1}}, 1, "link-none", "UDP port (4600)"},
		{[]map[string]int{{"viewer/direct": 1}, {"viewer/direct": 1, "seed/relay": 1}}, 1, "piece-none", "leeway doctor --config FILE"},
		{[]map[string]int{nil, nil}, 1, "piece-none", "leeway doctor --config FILE"}, // they have ended, and had links
	} {
		all := make([]viewer.Summary, len(c.linked))
		for i, linked := range c.linked {
			all[i] = viewer.Summary{Linked: linked, LinksOpened: c.opened}
		}
		if f := judged(all, false, "", 8*time.Second)[0]; f.Status != Fail || f.Code != c.code || !strings.Contains(f.Fix, c.fix) {
			t.Errorf("%v: %+v", c.linked, f)
		}
	}
}

// TestParametersOfAScheme: where the manifest is the same twice, a known name tells that there is a signature, and its scheme the rest.
func TestParametersOfAScheme(t *testing.T) {
	e := newExamination(Config{}.complete())
	defer e.close()
	for names, fix := range map[string]string{
		"expires md5":   "ignore_query: [expires, md5]}, or key: {presets: [nginx]}",
		"expires token": "presets: [bunny]",
		"token quality": "ignore_query: [token]}, or key: {presets: [bunny]}",
	} {
		values := map[string]string{}
		for _, name := range strings.Fields(names) {
			values[name] = "[1]"
		}
		if f := e.judgeNames(values, nil)[0]; f.Code != "signed-urls" || !strings.Contains(f.Fix, fix) {
			t.Errorf("%s: %+v", names, f)
		}
	}
}

// TestPageOriginsAreAsBrowsersWriteThem: the tracker compares them with what browsers say.
func TestPageOriginsAreAsBrowsersWriteThem(t *testing.T) {
	for given, want := range map[string]string{"HTTPS://WWW.example.com:443": "https://www.example.com", "http://localhost:3000/": "http://localhost:3000", "": "https://media.example.com"} {
		if c := (Config{Manifest: "https://media.example.com/film/master.m3u8", PageOrigin: given}).complete(); c.PageOrigin != want {
			t.Errorf("%q: %q", given, c.PageOrigin)
		}
	}
}
