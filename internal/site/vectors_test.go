package site

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/testkit/spec"
)

type vectors struct {
	Sites map[string]Config
	Keys  []struct {
		Name, Site, URL string
		URLHex          string `json:"url_hex"`
		Key, Error      string
	}
	Presets []struct {
		Preset, Key string
		URLs        []string
	}
	Titles   []struct{ Name, Site, Key, Explicit, Title, Error string }
	Bindings []struct {
		Name, Title, Manifest string
		Drop                  int
		Explicit              []Binding
		Files                 []string
		Bound                 bool
	}
	Credentials []struct {
		Name, URL  string
		Credential bool
	}
	Segments []struct {
		Site, Key string
		Range     []int64
		Name      segment.Name
		ID        string
	}
	Pieces  []struct{ Length, Pieces, Last int64 }
	Virtual []struct {
		Length      int64
		Count       int
		First, Last [2]int64
	}
}

var errorNames = map[string]error{
	"not-http": ErrNotHTTP, "credentials": ErrCredentials, "foreign-host": ErrForeignHost, "bad-path": ErrBadPath,
	"too-long": ErrTooLong, "bad-title": ErrBadTitle,
}

func readVectors(tb testing.TB) vectors { return spec.Vectors[vectors](tb, "site.json") }

func (v vectors) sites(tb testing.TB) map[string]*Site {
	tb.Helper()
	sites := map[string]*Site{}
	for name, c := range v.Sites {
		s, err := New(c)
		if err != nil {
			tb.Fatal(err)
		}
		sites[name] = s
	}
	return sites
}

func expect(t *testing.T, got string, err error, want, wantError string) {
	t.Helper()
	if wantError != "" {
		if errorNames[wantError] == nil || !errors.Is(err, errorNames[wantError]) {
			t.Errorf("got %q, %v; want %s", got, err, wantError)
		}
		return
	}
	if err != nil || got != want {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
}

func TestVectorsOfKeys(t *testing.T) {
	v := readVectors(t)
	sites := v.sites(t)
	for _, c := range v.Keys {
		t.Run(c.Name, func(t *testing.T) {
			url := c.URL
			if c.URLHex != "" {
				b, err := hex.DecodeString(c.URLHex)
				if err != nil {
					t.Fatal(err)
				}
				url = string(b)
			}
			got, err := sites[c.Site].Key(url)
			expect(t, got, err, c.Key, c.Error)
			if err != nil {
				return
			}
			if again, err := sites[c.Site].KeyOfPath(got); err != nil || again != got {
				t.Errorf("the key of key %q is %q, %v", got, again, err)
			}
		})
	}
}

func TestVectorsOfPresets(t *testing.T) {
	tried := map[string]bool{}
	for _, c := range readVectors(t).Presets {
		tried[c.Preset] = true
		operators, err := New(Config{Name: "demo", Hosts: []string{"video.example.com"}, Key: KeyRule{Presets: []string{c.Preset}}})
		if err != nil {
			t.Fatal(err)
		}
		sent, err := json.Marshal(operators.Config())
		if err != nil || strings.Contains(string(sent), "presets") {
			t.Fatalf("viewers are sent %s, %v", sent, err)
		}
		var config Config
		if err := json.Unmarshal(sent, &config); err != nil {
			t.Fatal(err)
		}
		viewers, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		for _, url := range c.URLs {
			if got, err := operators.Key(url); err != nil || got != c.Key {
				t.Errorf("%s: the key of %s is %q, %v; want %q", c.Preset, url, got, err, c.Key)
			}
			if got, _ := viewers.Key(url); got != c.Key {
				t.Errorf("%s: a viewer's key of %s is %q", c.Preset, url, got)
			}
		}
	}
	for name := range presets {
		if !tried[name] {
			t.Errorf("no vector for preset %s", name)
		}
	}
}

func TestPresetsOf(t *testing.T) {
	for _, c := range []struct{ parameters, want []string }{
		{[]string{"md5", "expires"}, []string{"nginx"}},
		{[]string{"token"}, []string{"bunny", "fastly"}},
		{[]string{"X-Amz-Date", "X-Amz-Signature"}, []string{"s3"}},
		{[]string{"token", "u"}, nil},
		{nil, nil},
	} {
		if got := PresetsOf(c.parameters); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.parameters, got, c.want)
		}
	}
}

func TestVectorsOfTitles(t *testing.T) {
	v := readVectors(t)
	sites := v.sites(t)
	for _, c := range v.Titles {
		t.Run(c.Name, func(t *testing.T) {
			got, err := sites[c.Site].Title(c.Key, c.Explicit)
			expect(t, got, err, c.Title, c.Error)
		})
	}
}

func TestVectorsOfBindings(t *testing.T) {
	for _, c := range readVectors(t).Bindings {
		s, err := New(Config{Name: "demo", Hosts: []string{"video.example.com"}, Files: c.Files, Title: Titles{Drop: c.Drop, Explicit: c.Explicit}})
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		if got := s.Binds(c.Title, c.Manifest); got != c.Bound {
			t.Errorf("%s: %q with %q: %v", c.Name, c.Title, c.Manifest, got)
		}
	}
}

func TestVectorsOfCredentials(t *testing.T) {
	for _, c := range readVectors(t).Credentials {
		if got := HasCredential(c.URL); got != c.Credential {
			t.Errorf("%s: HasCredential(%q) is %v", c.Name, c.URL, got)
		}
	}
}

func TestVectorsOfSegments(t *testing.T) {
	v := readVectors(t)
	for _, c := range v.Segments {
		n := segment.WholeName(c.Key)
		if c.Range != nil {
			n = segment.RangeName(c.Key, c.Range[0], c.Range[1])
			if key, first, last, ok := n.Range(); !ok || key != c.Key || first != c.Range[0] || last != c.Range[1] {
				t.Errorf("%s splits into %q %d %d %v", n, key, first, last, ok)
			}
		}
		if n != c.Name || n.Key() != c.Key {
			t.Errorf("name is %q of key %q; want %q of %q", n, n.Key(), c.Name, c.Key)
		}
		if id := segment.NewID(c.Site, n); id.String() != c.ID {
			t.Errorf("ID of %q is %s, want %s", n, id, c.ID)
		}
	}
	for _, c := range v.Pieces {
		if got := segment.Pieces(c.Length); int64(got) != c.Pieces {
			t.Errorf("Pieces(%d) is %d", c.Length, got)
		}
		if got := segment.PieceLen(c.Length, int(c.Pieces)-1); int64(got) != c.Last {
			t.Errorf("the last piece of %d has %d bytes", c.Length, got)
		}
		if got := segment.PieceLen(c.Length, int(c.Pieces)); got != 0 {
			t.Errorf("piece behind the last of %d has %d bytes", c.Length, got)
		}
	}
	for _, c := range v.Virtual {
		spans := segment.Virtual(c.Length)
		if len(spans) != c.Count {
			t.Errorf("Virtual(%d) has %d spans, want %d", c.Length, len(spans), c.Count)
			continue
		}
		if c.Count > 0 && (spans[0] != segment.Span{First: c.First[0], Last: c.First[1]} || spans[c.Count-1] != segment.Span{First: c.Last[0], Last: c.Last[1]}) {
			t.Errorf("Virtual(%d) is %v … %v", c.Length, spans[0], spans[c.Count-1])
		}
	}
}
