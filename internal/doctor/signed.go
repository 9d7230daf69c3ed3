package doctor

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/leeway-video/leeway/internal/site"
)

// checkSigned looks for what names the viewer or the moment in the URLs of segments: names that differ from viewer to viewer are of
// segments that no two of them share. It fetches the manifest once more and compares.
func checkSigned(ctx context.Context, e *examination) []Finding {
	m := e.manifest
	if m == nil {
		return skipped(needsManifest)
	}
	again := &manifest{answer: e.get(ctx, "manifest", m.asked, maxManifest, 0, false)}
	if again.trouble() != nil || again.read(ctx, e) != nil {
		return skipped("the manifest did not come a second time, so that its names cannot be compared")
	}
	before, after := m.segments, again.segments
	if m.live {
		before, after = common(before, after), common(after, before)
	}
	if len(before) == 0 || len(after) == 0 {
		return skipped("the two readings of the live playlist have no segment in common: its paths may hold tokens (key.path of the site)")
	}
	if a, b := before[0].url, after[0].url; plainPath(a) != plainPath(b) && (e.rules == nil || key(e.rules, a) != key(e.rules, b)) {
		e.signedURL = true
		return fail("signed-path", "paths of segments change from request to request: "+plainPath(a)+" and "+plainPath(b),
			"set key.path of the site to the pattern of the token in the path, such as /t/{}/, or name its scheme in key.presets (docs/operations/signed-urls.md)")
	}
	names, changing := parameters(before), map[string]bool{}
	for name, value := range parameters(after) {
		if names[name] != value {
			changing[name] = true
		}
	}
	return e.judgeNames(names, changing)
}

// judgeNames says what parameters in names of segments mean.
func (e *examination) judgeNames(names map[string]string, changing map[string]bool) []Finding {
	var open, harmless []string
	for name := range names {
		credential := site.HasCredential("https://host/?" + name + "=x")
		switch {
		case e.ignores(name):
		case changing[name] || credential:
			open = append(open, name)
		default:
			harmless = append(harmless, name)
		}
	}
	if preset := site.PresetsOf(append(slices.Clone(open), harmless...)); len(open) > 0 && len(preset) > 0 {
		open, harmless = append(open, harmless...), nil // a scheme that is known has all of them, md5 beside expires
	}
	slices.Sort(open)
	slices.Sort(harmless)
	if len(open) > 0 {
		e.signedURL = true
		return fail("signed-urls", "segment URLs carry parameters of one viewer: "+strings.Join(open, ", ")+". Each viewer has names of its own, and nothing is shared",
			ignoring(open))
	}
	if len(harmless) > 0 {
		return warn("query-in-names", "segment URLs carry parameters: "+strings.Join(harmless, ", ")+". Two requests had the same values, so they may select content",
			"if they do not, add them to key.ignore_query of the site")
	}
	if site.HasCredential(e.cfg.Manifest) && e.cfg.Token == "" {
		return warn("manifest-credential", "the manifest's URL carries a credential: pages without a join token play such a title from the origin alone",
			"give pages a join token (access: token and token_keys of the site, data-token of the page)")
	}
	if len(names) > 0 {
		return ok("the site ignores the parameters of segment URLs: %s", strings.Join(sortedKeys(names), ", "))
	}
	return ok("segment URLs carry no signature")
}

// ignoring says what to add to the site's key rule for parameters of one viewer.
func ignoring(parameters []string) string {
	advice := "add to the site: key: {ignore_query: [" + strings.Join(parameters, ", ") + "]}"
	if presets := site.PresetsOf(parameters); len(presets) > 0 {
		advice += ", or key: {presets: [" + presets[0] + "]}"
	}
	return advice + " (docs/operations/signed-urls.md)"
}

// ignores says whether the site's key rule drops a parameter.
func (e *examination) ignores(name string) bool {
	if e.rules == nil {
		return false
	}
	k, err := e.rules.KeyOfPath("/a?" + name + "=x")
	return err == nil && k == "/a"
}

func key(rules *site.Site, url string) string {
	k, _ := rules.Key(url)
	return k
}

// common keeps of a list what the other has too.
func common(list, other []object) []object {
	paths := map[string]bool{}
	for _, s := range other {
		paths[plainPath(s.url)] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(s object) bool { return !paths[plainPath(s.url)] })
}

func plainPath(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	return u.Path
}

// parameters are those of segments' URLs, with the value of the last.
func parameters(list []object) map[string]string {
	names := map[string]string{}
	for _, s := range list {
		u, err := url.Parse(s.url)
		if err != nil {
			continue
		}
		for name, values := range u.Query() {
			names[name] = fmt.Sprint(values)
		}
	}
	return names
}

func sortedKeys[V any](m map[string]V) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}
