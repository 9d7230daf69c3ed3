package access

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/testkit/spec"
)

type tokenVectors struct {
	Keys   json.RawMessage
	Titles []struct {
		Patterns []string
		Title    string
		Covered  bool
	}
	Manifests []struct {
		Patterns []string
		Manifest string
		Named    bool
	}
	Roles   []struct{ A, B, Together string }
	KeySets []struct {
		Name, Text string
		OK         bool
	} `json:"key_sets"`
}

func readTokenVectors(t testing.TB) tokenVectors { return spec.Vectors[tokenVectors](t, "access.json") }

func TestPatternsCoverTitles(t *testing.T) {
	for _, c := range readTokenVectors(t).Titles {
		if g := (&Grant{Titles: c.Patterns}); g.Covers(c.Title) != c.Covered {
			t.Errorf("%q over %q: %v", c.Patterns, c.Title, !c.Covered)
		}
	}
}

func TestPatternsNameManifests(t *testing.T) {
	for _, c := range readTokenVectors(t).Manifests {
		if g := (&Grant{Manifests: c.Patterns}); g.Names(c.Manifest) != c.Named {
			t.Errorf("%q of %q: %v", c.Manifest, c.Patterns, !c.Named)
		}
	}
}

func TestRolesTogether(t *testing.T) {
	for _, c := range readTokenVectors(t).Roles {
		if a, b := site.NarrowRole(c.A, c.B), site.NarrowRole(c.B, c.A); a != c.Together || b != c.Together {
			t.Errorf("%s and %s: %s and %s, want %s", c.A, c.B, a, b, c.Together)
		}
	}
}

func TestKeySets(t *testing.T) {
	for _, c := range readTokenVectors(t).KeySets {
		keys, err := ParseKeys([]byte(c.Text))
		if (err == nil) != c.OK || (err == nil) != (len(keys) > 0) {
			t.Errorf("%s: %d keys, %v", c.Name, len(keys), err)
		}
	}
	if _, err := ParseKeys(append(make([]byte, MaxKeyFile), '{')); err == nil {
		t.Error("a file beyond the limit was read")
	}
}

func TestKeysSurviveTheirFile(t *testing.T) {
	for _, alg := range []string{EdDSA, HS256} {
		made, err := NewKey(alg, "k.1")
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		read, err := ParseKey(text)
		if err != nil || read.ID != "k.1" || read.Alg != alg || !read.Public.Equal(made.Public) || !read.Private.Equal(made.Private) || string(read.Secret) != string(made.Secret) {
			t.Errorf("%s: %+v, %v", alg, read, err)
		}
		half, err := json.Marshal(made.Checking())
		if err != nil {
			t.Fatal(err)
		}
		set, err := ParseKeys([]byte(`{"keys":[` + string(half) + `]}`))
		if err != nil || len(set) != 1 || set[0].Private != nil {
			t.Errorf("%s: %v", alg, err)
		}
		if _, err := ParseKey(half); (err == nil) != (alg == HS256) {
			t.Errorf("%s: the half that checks was taken for one that signs: %v", alg, err)
		}
	}
	for alg, id := range map[string]string{"RS256": "k", EdDSA: "", HS256: "a b"} {
		if _, err := NewKey(alg, id); err == nil {
			t.Errorf("%s with the name %q was made", alg, id)
		}
	}
	one, _ := NewKey(EdDSA, "a")
	other, _ := NewKey(EdDSA, "b")
	one.Public = other.Public
	if text, err := json.Marshal(one); err != nil {
		t.Error(err)
	} else if _, err := ParseKey(text); err == nil {
		t.Error("two halves of different keys were taken")
	}
}

// FuzzClaims: what is read fits its limits, whatever was signed.
func FuzzClaims(f *testing.F) {
	f.Add([]byte(`{"site":"demo","exp":1790000300,"nbf":1,"title":["/a*","b"],"manifest":["/a/*"],"group":"g","role":"off","upload_kbps":2000,"disk_bytes":5000}`))
	f.Add([]byte(`{"site":"\ud800","exp":1e9,"title":"*"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ParseClaims(text)
		var refused *TokenError
		if err != nil {
			if !errors.As(err, &refused) || refused.Reason != BadClaims {
				t.Fatal(err)
			}
			return
		}
		if c.Site == "" || len(c.Subject) > maxSubject || len(c.Group) > maxGroup || len(c.Titles) > maxPatterns || len(c.Manifests) > maxPatterns || c.Expires.IsZero() || c.Upload != 0 && (c.Upload < site.MinUploadKbps || c.Upload > site.MaxUploadKbps) || c.Disk < 0 || c.Disk > site.MaxDiskBytes {
			t.Fatalf("%+v", c)
		}
		if g, err := c.Grant(c.Site, "k", time.Unix(1_790_000_000, 0)); err == nil && g.Role == "" {
			t.Fatal("granted without a role")
		}
	})
}

func FuzzKeys(f *testing.F) {
	for _, c := range readTokenVectors(f).KeySets {
		f.Add([]byte(c.Text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := ParseKeys(text)
		if err != nil {
			return
		}
		for _, k := range keys {
			if k.Private != nil || !KeyIDFits(k.ID) || k.Alg != EdDSA && k.Alg != HS256 {
				t.Fatalf("%+v", k)
			}
		}
	})
}
