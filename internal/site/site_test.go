package site

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/certificate"
)

func valid() Config {
	return Config{Name: "demo", Hosts: []string{"video.example.com"}}
}

func TestDefaults(t *testing.T) {
	c := valid()
	c.FetchBase = "https://origin.internal:8443/vod/"
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	got := s.Config()
	want := Policy{Role: RoleFull, Prefetch: PrefetchAllow, Relay: RelayAllow, Local: LocalIfGranted, CertifyFrom: 2, MinViewers: 1, SignedManifests: SignedOff, UnknownLine: UnknownLineLeech, CostlyTitles: CostlyRest, MaxLinks: 16}
	if got.Policy != want || got.Access != AccessPublic || got.FetchBase != "https://origin.internal:8443/vod" {
		t.Errorf("got %+v", got)
	}
}

// Public keys of spec/vectors/certificate.json: of the packager and of seed A.
const (
	packagerKey = "BDUhYFXYJX-tqbUrOJXs3iAljLsJ9zb3aJYX5vN1wkYVC1LXeO6oH55cbeTNMZPRyPBcJu0GwxCt7NQc29NgK78"
	otherKey    = "BOrSToZJ447LUe5H-UQUqAkr8shCaSD339AWqcjWpN-HawpW4TyfvPbEyUkYjLTTh4Xs41uL-1BXQ4jQFnfvagA"
)

// TestPackagers: the keys of packagers are kept in their order, and vouch for this site alone.
func TestPackagers(t *testing.T) {
	c := valid()
	c.PackagerKeys = []string{packagerKey, otherKey}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	got := s.Packagers()
	if len(got) != 2 || got[0].KeyID.String() != "4fdae447893786f8" || got[0].Alg != certificate.Packager || !slices.Equal(got[0].Sites, []string{"demo"}) {
		t.Errorf("got %+v", got)
	}
	if _, err := certificate.NewKeySet(got...); err != nil {
		t.Error(err)
	}
}

func TestServersSecretsStayOutOfJSON(t *testing.T) {
	c := valid()
	c.FetchBase, c.PageOrigins = "http://origin.internal", []string{"https://www.example.com"}
	bind("internal", "/internal")(&c)
	c.PackagerKeys = []string{"www."}
	b, err := json.Marshal(c)
	if err != nil || strings.Contains(string(b), "internal") || strings.Contains(string(b), "www.") {
		t.Errorf("%s, %v", b, err)
	}
}

// bind has a title bound to manifests.
func bind(title string, manifests ...string) func(*Config) {
	return func(c *Config) { c.Title.Explicit = []Binding{{Title: title, Manifests: manifests}} }
}

func TestNewNamesTheFieldThatIsWrong(t *testing.T) {
	for _, c := range []struct {
		path   string
		change func(*Config)
	}{
		{"name", func(c *Config) { c.Name = "" }},
		{"name", func(c *Config) { c.Name = "Demo" }},
		{"name", func(c *Config) { c.Name = strings.Repeat("a", 33) }},
		{"hosts", func(c *Config) { c.Hosts = nil }},
		{"hosts", func(c *Config) { c.Hosts = make([]string, 65) }},
		{"hosts[1]", func(c *Config) { c.Hosts = append(c.Hosts, "video.example.com") }},
		{"hosts[0]", func(c *Config) { c.Hosts[0] = "https://video.example.com" }},
		{"hosts[0]", func(c *Config) { c.Hosts[0] = "Video.example.com" }},
		{"hosts[0]", func(c *Config) { c.Hosts[0] = "video.example.com/" }},
		{"hosts[0]", func(c *Config) { c.Hosts[0] = "video.example.com:443" }},
		{"hosts[0]", func(c *Config) { c.Hosts[0] = "video.example.com:" }},
		{"hosts[0]", func(c *Config) { c.Hosts[0] = "video.example.com:08443" }},
		{"hosts[0]", func(c *Config) { c.Hosts[0] = "[::1" }},
		{"hosts[0]", func(c *Config) { c.Hosts[0] = "[0:0::1]" }},
		{"hosts[0]", func(c *Config) { c.Hosts[0] = "fïlm.example.com" }},
		{"key.ignore_query", func(c *Config) { c.Key.IgnoreQuery = make([]string, 65) }},
		{"key.ignore_query[1]", func(c *Config) { c.Key.IgnoreQuery = []string{"a", ""} }},
		{"key.ignore_query[0]", func(c *Config) { c.Key.IgnoreQuery = []string{"a=b"} }},
		{"key.ignore_query[0]", func(c *Config) { c.Key.IgnoreQuery = []string{"a b"} }},
		{"key.ignore_path", func(c *Config) { c.Key.IgnorePath = make([]string, 17) }},
		{"key.ignore_path[1]", func(c *Config) { c.Key.IgnorePath = []string{"tok=*", ""} }},
		{"key.ignore_path[0]", func(c *Config) { c.Key.IgnorePath = []string{"*"} }},
		{"key.ignore_path[0]", func(c *Config) { c.Key.IgnorePath = []string{"t*"} }},
		{"key.ignore_path[0]", func(c *Config) { c.Key.IgnorePath = []string{"a/b"} }},
		{"key.ignore_path[0]", func(c *Config) { c.Key.IgnorePath = []string{".."} }},
		{"key.ignore_path[0]", func(c *Config) { c.Key.IgnorePath = []string{"a b"} }},
		{"key.presets[0]", func(c *Config) { c.Key.Presets = []string{"acme"} }},
		{"key.presets[1]", func(c *Config) { c.Key.Presets = []string{"s3", "s3"} }},
		{"key.path", func(c *Config) { c.Key.Path = "t/{}/" }},
		{"key.path", func(c *Config) { c.Key.Path = "/t/{}" }},
		{"key.path", func(c *Config) { c.Key.Path = "/" }},
		{"key.path", func(c *Config) { c.Key.Path = "/t/" }},
		{"key.path", func(c *Config) { c.Key.Path = "/a{}/" }},
		{"key.path", func(c *Config) { c.Key.Path = "/../{}/" }},
		{"key.path", func(c *Config) { c.Key.Path = "//{}/" }},
		{"key.path", func(c *Config) { c.Key.Path = "/" + strings.Repeat("a", 254) + "/{}/" }},
		{"title.drop", func(c *Config) { c.Title.Drop = 9 }},
		{"title.drop", func(c *Config) { c.Title.Drop = -1 }},
		{"title.explicit", func(c *Config) { c.Title.Explicit = make([]Binding, 1025) }},
		{"title.explicit[0].title", bind("", "/a")},
		{"title.explicit[0].title", bind("/a", "/a/m")},
		{"title.explicit[0].title", bind("a\n", "/a")},
		{"title.explicit[0].title", bind("{}-{}", "/{}")},
		{"title.explicit[0].title", bind(strings.Repeat("a", 513), "/a")},
		{"title.explicit[0].manifests", bind("a")},
		{"title.explicit[0].manifests", bind("a", make([]string, 17)...)},
		{"title.explicit[0].manifests[1]", bind("a", "/a", "a/m")},
		{"title.explicit[0].manifests[0]", bind("a", "https://video.example.com/a")},
		{"title.explicit[0].manifests[0]", bind("a", "/a?b")},
		{"title.explicit[0].manifests[0]", bind("a", "/a b")},
		{"title.explicit[0].manifests[0]", bind("a", "/a/../b")},
		{"title.explicit[0].manifests[0]", bind("a", "/{}/m")},
		{"title.explicit[0].manifests[0]", bind("{}", "/{}/{}")},
		{"title.explicit[0].manifests[0]", bind("a", "/"+strings.Repeat("a", 1024))},
		{"title.explicit[0].manifests[0]", func(c *Config) { c.Access = AccessToken; bind("{}", "/*")(c) }},
		{"title.explicit[0].manifests[1]", func(c *Config) { c.Access = AccessToken; bind("movie-{}", "/vod/{}/*", "/vod/{}*")(c) }},
		{"access", func(c *Config) { c.Access = "open" }},
		{"policy.role", func(c *Config) { c.Policy.Role = "king" }},
		{"policy.prefetch", func(c *Config) { c.Policy.Prefetch = "true" }},
		{"policy.relay", func(c *Config) { c.Policy.Relay = "yes" }},
		{"policy.local", func(c *Config) { c.Policy.Local = "always" }},
		{"policy.signed_manifests", func(c *Config) { c.Policy.SignedManifests = "on" }},
		{"policy.unknown_line", func(c *Config) { c.Policy.UnknownLine = "off" }},
		{"policy.certify_from", func(c *Config) { c.Policy.CertifyFrom = -1 }},
		{"policy.upload_kbps", func(c *Config) { c.Policy.UploadKbps = MinUploadKbps - 1 }},
		{"policy.upload_kbps", func(c *Config) { c.Policy.UploadKbps = -1 }},
		{"policy.disk_bytes", func(c *Config) { c.Policy.DiskBytes = -1 }},
		{"policy.disk_bytes", func(c *Config) { c.Policy.DiskBytes = MaxDiskBytes + 1 }},
		{"policy.costly_titles", func(c *Config) { c.Policy.CostlyTitles = "never" }},
		{"policy.control_group_permille", func(c *Config) { c.Policy.ControlGroupPermille = 1001 }},
		{"policy.max_links", func(c *Config) { c.Policy.MaxLinks = 33 }},
		{"policy.waste_bytes", func(c *Config) { c.Policy.WasteBytes = -1 }},
		{"fetch_base", func(c *Config) { c.FetchBase = "origin.internal" }},
		{"fetch_base", func(c *Config) { c.FetchBase = "https://u:p@origin.internal" }},
		{"fetch_base", func(c *Config) { c.FetchBase = "https://origin.internal/?a" }},
		{"policy.min_viewers", func(c *Config) { c.Policy.MinViewers = -1 }},
		{"policy.hold_back_permille", func(c *Config) { c.Policy.HoldBackPermille = 1001 }},
		{"files[1]", func(c *Config) { c.Files = []string{"/downloads/*", "downloads/a.iso"} }},
		{"files[0]", func(c *Config) { c.Files = []string{"/downloads/*.iso"} }},
		{"files[0]", func(c *Config) { c.Files = []string{"/downloads/../a.iso"} }},
		{"files[0]", func(c *Config) { c.Files = []string{"/a.iso?v=1"} }},
		{"files", func(c *Config) { c.Files = make([]string, 65) }},
		{"fetch_auth.sign", func(c *Config) { c.FetchAuth = FetchAuth{KeyFile: "k"} }},
		{"fetch_auth.sign", func(c *Config) { c.FetchAuth = FetchAuth{Sign: "akamai", KeyFile: "k"} }},
		{"fetch_auth.key_file", func(c *Config) { c.FetchAuth = FetchAuth{Sign: SignNginx} }},
		{"fetch_auth.key_pair_id", func(c *Config) { c.FetchAuth = FetchAuth{Sign: SignCloudFront, KeyFile: "k"} }},
		{"fetch_auth.key_pair_id", func(c *Config) { c.FetchAuth = FetchAuth{Sign: SignNginx, KeyFile: "k", KeyPairID: "K1"} }},
		{"fetch_auth.parameters", func(c *Config) {
			c.FetchAuth = FetchAuth{Sign: SignNginx, KeyFile: "k", Parameters: []string{"a=", "b"}}
		}},
		{"fetch_auth.parameters", func(c *Config) { c.FetchAuth = FetchAuth{Sign: SignNginx, KeyFile: "k", Parameters: []string{"a"}} }},
		{"fetch_auth", func(c *Config) { c.FetchAuth, c.FetchBase = FetchAuth{HeadersFile: "h"}, "https://origin.internal" }},
		{"fetch_auth", func(c *Config) { c.FetchAuth, c.Access = FetchAuth{HeadersFile: "h"}, AccessToken }},
		{"page_origins[1]", func(c *Config) { c.PageOrigins = []string{"*", "www.example.com"} }},
		{"page_origins[0]", func(c *Config) { c.PageOrigins = []string{"https://www.example.com/"} }},
		{"packager_keys[0]", func(c *Config) { c.PackagerKeys = []string{"packager.key"} }},
		{"packager_keys[0]", func(c *Config) { c.PackagerKeys = []string{packagerKey[:86]} }},
		{"packager_keys[0]", func(c *Config) { c.PackagerKeys = []string{"BB" + packagerKey[2:]} }},
		{"packager_keys[1]", func(c *Config) { c.PackagerKeys = []string{packagerKey, packagerKey} }},
		{"packager_keys[1]", func(c *Config) { c.PackagerKeys = []string{packagerKey, packagerKey + "\n"} }},
		{"packager_keys", func(c *Config) { c.PackagerKeys = make([]string, 9) }},
	} {
		config := valid()
		c.change(&config)
		_, err := New(config)
		var field *FieldError
		if !errors.As(err, &field) || field.Path != c.path || field.Hint == "" {
			t.Errorf("%+v: got %v, want %s", config, err, c.path)
		}
	}
}

func TestAllowsOrigin(t *testing.T) {
	c := valid()
	c.Hosts = append(c.Hosts, "localhost:8080", "[::1]:8080")
	c.PageOrigins = []string{"https://www.example.com"}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	for origin, want := range map[string]bool{
		"https://video.example.com": true, "http://video.example.com": true, "https://video.example.com:443": true,
		"http://localhost:8080": true, "http://[::1]:8080": true, "https://www.example.com": true,
		"http://www.example.com": false, "https://www.example.com:8443": false, "https://evil.example": false,
		"https://video.example.com.evil.example": false, "https://video.example.com@evil.example": false,
		"http://localhost": false, "": false, "null": false, "file://": false, "https://": false,
	} {
		if got := s.AllowsOrigin(origin); got != want {
			t.Errorf("%q: %v", origin, got)
		}
	}
	c.PageOrigins = []string{"*"}
	if s, err = New(c); err != nil || !s.AllowsOrigin("null") || !s.AllowsOrigin("") {
		t.Errorf(`"*" does not allow every page: %v`, err)
	}
}

func TestKeyOfPathHasNoTokens(t *testing.T) {
	c := valid()
	c.Key.Path = "/t/{}/"
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if key, err := s.KeyOfPath("/t/x/%61.ts?b=1&a=2#f"); err != nil || key != "/t/x/a.ts?a=2&b=1" {
		t.Errorf("%q, %v", key, err)
	}
	if _, err := s.KeyOfPath("a.ts"); !errors.Is(err, ErrBadPath) {
		t.Errorf("a relative path: %v", err)
	}
}

func FuzzKey(f *testing.F) {
	v := readVectors(f)
	sites := v.sites(f)
	for _, c := range v.Keys {
		f.Add(c.URL)
	}
	f.Fuzz(func(t *testing.T, url string) {
		HasCredential(url)
		for name, s := range sites {
			key, err := s.Key(url)
			if err != nil {
				if key != "" {
					t.Fatalf("%s: %q with %v", name, key, err)
				}
				continue
			}
			if len(key) > MaxKey || key[0] != '/' {
				t.Fatalf("%s: key %q", name, key)
			}
			for i := range len(key) {
				if key[i] <= 0x20 || key[i] >= 0x7f || key[i] == '#' {
					t.Fatalf("%s: key %q has byte %#x", name, key, key[i])
				}
			}
			if again, err := s.KeyOfPath(key); err != nil || again != key {
				t.Fatalf("%s: the key of key %q is %q, %v", name, key, again, err)
			}
			if s.pattern == nil {
				if again, err := s.Key("https://" + s.Hosts()[0] + key); err != nil || again != key {
					t.Fatalf("%s: the key of key %q is %q, %v", name, key, again, err)
				}
			}
			if title, err := s.Title(key, ""); err == nil && title[0] != '/' {
				t.Fatalf("%s: title %q", name, title)
			}
		}
	})
}

func BenchmarkKey(b *testing.B) {
	s, err := New(Config{Name: "demo", Hosts: []string{"video.example.com"}, Key: KeyRule{IgnoreQuery: []string{"session", "utm_*"}}})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Key("https://video.example.com/media/bbb/720p/segment-00017.ts?session=81f2a&lang=de"); err != nil {
			b.Fatal(err)
		}
	}
}

// TestWhatServersDecideByIsNotSentToViewers: they are sent a site as JSON.
func TestWhatServersDecideByIsNotSentToViewers(t *testing.T) {
	s, err := New(Config{Name: "demo", Hosts: []string{"video.example.com"}, Policy: Policy{CertifyFrom: 3, MinViewers: 4, HoldBackPermille: 5}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"certify_from", "min_viewers", "hold_back_permille"} {
		if strings.Contains(string(b), key) {
			t.Errorf("%s is in %s", key, b)
		}
	}
}
