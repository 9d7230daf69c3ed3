package site

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of title.explicit (spec/site.md).
const (
	maxBindings  = 1024
	maxManifests = 16 // of one binding
)

// hole is what stands for a part of a title that its manifests have too.
const hole = "{}"

// binding is a Binding taken apart.
type binding struct {
	title     affix
	manifests []manifestPattern
}

// affix is a text with one hole in it, or without.
type affix struct {
	before, behind string
	open           bool // there is a hole between the two
}

type manifestPattern struct {
	affix
	rest bool // anything may follow
}

func newAffix(s string) affix {
	before, behind, open := strings.Cut(s, hole)
	return affix{before, behind, open}
}

func newManifestPattern(s string) manifestPattern {
	s, rest := strings.CutSuffix(s, "*")
	return manifestPattern{newAffix(s), rest}
}

func (b Binding) compile() binding {
	out := binding{title: newAffix(b.Title)}
	for _, m := range b.Manifests {
		out.manifests = append(out.manifests, newManifestPattern(m))
	}
	return out
}

// filling says whether a text fits, and what fills its hole.
func (a affix) filling(s string) (filling string, ok bool) {
	if !a.open {
		return "", s == a.before
	}
	if len(s) <= len(a.before)+len(a.behind) || !strings.HasPrefix(s, a.before) || !strings.HasSuffix(s, a.behind) {
		return "", false
	}
	filling = s[len(a.before) : len(s)-len(a.behind)]
	return filling, !strings.Contains(filling, "/")
}

// filled is the text with its hole filled.
func (a affix) filled(filling string) string {
	if !a.open {
		return a.before
	}
	return a.before + filling + a.behind
}

func (b *binding) binds(title, manifestKey string) bool {
	filling, ok := b.title.filling(title)
	if !ok {
		return false
	}
	filling = percentForm(filling, false)
	for _, m := range b.manifests {
		if want := m.filled(filling); manifestKey == want || m.rest && strings.HasPrefix(manifestKey, want) {
			return true
		}
	}
	return false
}

// Binds says whether a title belongs to a manifest, whose key it is given without a query: one that begins with a slash by the
// title rule, an explicit one by an entry of title.explicit (spec/site.md, "Titles and their manifests"). A file has one title, its key.
func (s *Site) Binds(title, manifestKey string) bool {
	if s.IsFile(manifestKey) {
		return title == manifestKey
	}
	if IsExplicit(title) {
		for i := range s.bindings {
			if s.bindings[i].binds(title, manifestKey) {
				return true
			}
		}
		return false
	}
	path, _, _ := strings.Cut(title, "?")
	rule, err := s.Title(manifestKey, "")
	return err == nil && rule == path
}

// IsExplicit says whether a title is a name that a page gave, and not one of the title rule.
func IsExplicit(title string) bool { return !strings.HasPrefix(title, "/") }

func (c *Config) checkBindings() *FieldError {
	if len(c.Title.Explicit) > maxBindings {
		return wrong("title.explicit", fmt.Sprintf("at most %d; {} in title and manifests stands for one part of both", maxBindings), "has %d entries", len(c.Title.Explicit))
	}
	for i, b := range c.Title.Explicit {
		path := fmt.Sprintf("title.explicit[%d]", i)
		if problem, hint := b.checkTitle(); problem != "" {
			return wrong(path+".title", hint, "%q %s", b.Title, problem)
		}
		if len(b.Manifests) == 0 || len(b.Manifests) > maxManifests {
			return wrong(path+".manifests", fmt.Sprintf("list the 1–%d manifests that the title may be joined with", maxManifests), "has %d entries", len(b.Manifests))
		}
		for j, m := range b.Manifests {
			problem, hint := b.checkManifest(m)
			if problem == "" && c.Access == AccessToken {
				problem, hint = b.opensOthers(m)
			}
			if problem != "" {
				return wrong(fmt.Sprintf("%s.manifests[%d]", path, j), hint, "%q %s", m, problem)
			}
		}
	}
	return nil
}

func (b Binding) checkTitle() (problem, hint string) {
	switch t := b.Title; {
	case t == "" || len(t) > MaxTitle || !utf8.ValidString(t) || strings.ContainsFunc(t, isControl):
		return "is not 1–512 bytes of UTF-8 without control characters", "write the title as pages give it"
	case !IsExplicit(t):
		return "begins with a slash, as titles of the title rule do", "leave it out: such a title belongs to the manifest that it is made of"
	case strings.Count(t, hole) > 1:
		return "has more than one {}", "one {} stands for one part of title and manifest"
	}
	return "", ""
}

func (b Binding) checkManifest(m string) (problem, hint string) {
	p := newManifestPattern(m)
	literal := p.filled("x")
	switch {
	case len(m) > MaxKey || !strings.HasPrefix(m, "/"):
		return "is no path of 1–1024 bytes", "write the manifest's path, such as /vod/{}/master.m3u8, or /vod/{}/* for all in a folder"
	case strings.Contains(p.behind, hole):
		return "has more than one {}", "one {} stands for one part of title and manifest"
	case p.open && !newAffix(b.Title).open:
		return "has a {} that the title does not have", "write {} into the title, too"
	case strings.ContainsAny(literal, `?#\`):
		return "is more than a path", "leave out query and fragment: manifests are named without them"
	case removeDots(percentForm(literal, false)) != literal:
		return "is not in the form in which paths are compared", "write it as the key rule does: in percent form, without . and .. elements"
	}
	return "", ""
}

// opensOthers says why a token for one of the titles that a pattern stands for would open a manifest of another one.
func (b Binding) opensOthers(m string) (problem, hint string) {
	switch p := newManifestPattern(m); {
	case !newAffix(b.Title).open:
	case !p.open:
		return "is the same for every title that " + b.Title + " stands for, so a token for one of them would open it",
			"write {} into the manifest where the title has it, or an entry a title"
	case p.rest && p.behind == "":
		return "fits whatever begins as the title does, so a token for title 1 would open what is of title 12",
			"write what no title has between {} and *, as in /vod/{}/*"
	}
	return "", ""
}
