package playlist

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

// mediaOfVariables is a media playlist with one segment, after some definitions.
func mediaOfVariables(definitions, uri string) []byte {
	return []byte("#EXTM3U\n#EXT-X-TARGETDURATION:4\n" + definitions + "#EXTINF:4,{$title}\n" + uri + "\n")
}

func sourceAt(t testing.TB, text string, imports Variables) Source {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return Source{URL: u, Imports: imports}
}

func TestVariablesAreFilledIn(t *testing.T) {
	from := sourceAt(t, "https://video.example.com/live/index.m3u8?token=a%2Fb%3D&v=2&v=3", Variables{"cdn": "https://video.example.com/x"})
	for _, c := range []struct{ definitions, uri, want string }{
		{"#EXT-X-DEFINE:NAME=\"dir\",VALUE=\"720p\"\n", "{$dir}/a.ts?{$dir}", "720p/a.ts?720p"},
		{"#EXT-X-DEFINE:VALUE=\"720p, high\",NAME=\"d-i_R1\"\r\n", "{$d-i_R1}/a.ts\r", "720p, high/a.ts"},
		{"#EXT-X-DEFINE:NAME=\"none\",VALUE=\"\"\n", "a{$none}.ts", "a.ts"},
		{"#EXT-X-DEFINE:NAME=\"a\",VALUE=\"1\"\n#EXT-X-DEFINE:NAME=\"b\",VALUE=\"{$a}{$a}\"\n", "{$b}.ts", "11.ts"},
		{"#EXT-X-DEFINE:NAME=\"a\",VALUE=\"{$\"\n#EXT-X-DEFINE:NAME=\"b\",VALUE=\"{$a}a}\"\n", "{$b}.ts", "{$a}.ts"},
		{"#EXT-X-DEFINE:IMPORT=\"cdn\"\n", "{$cdn}/a.ts", "https://video.example.com/x/a.ts"},
		{"#EXT-X-DEFINE:QUERYPARAM=\"token\"\n", "a.ts?token={$token}", "a.ts?token=a/b="},
		{"#EXT-X-DEFINE:QUERYPARAM=\"v\"\n", "a.ts?v={$v}", "a.ts?v=2"},
		{"", "{$dir}/a.ts", "{$dir}/a.ts"}, // without a definition it is text, as it was before there were variables
		{"#EXT-X-DEFINE:NAME=\"dir\",VALUE=\"720p\"\n", "{$ dir}{$}{dir}/a.ts", "{$ dir}{$}{dir}/a.ts"},
	} {
		if _, m, err := ReadFrom(from, mediaOfVariables(c.definitions, c.uri)); err != nil || len(m.Segments) != 1 || m.Segments[0].URI != c.want {
			t.Errorf("%q, %s: %+v, %v", c.definitions, c.uri, m, err)
		}
	}
}

// TestVariablesStandInAttributes of all tags that are read, and a master playlist hands its own on.
func TestVariablesStandInAttributes(t *testing.T) {
	const define = "#EXT-X-DEFINE:NAME=\"v\",VALUE=\"x\"\n"
	master, _, err := Read([]byte("#EXTM3U\n" + define + "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"{$v}\",NAME=\"en\",URI=\"{$v}/en.m3u8\"\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"{$v}\"\n{$v}/low.m3u8\n"))
	want := &Master{
		Variants: []Variant{{URI: "x/low.m3u8", Audio: "x", Bandwidth: 1}}, Alternatives: []Alternative{{Type: "AUDIO", Group: "x", Name: "en", URI: "x/en.m3u8"}},
		Variables: Variables{"v": "x"},
	}
	if err != nil || !reflect.DeepEqual(master, want) {
		t.Errorf("%+v, %v", master, err)
	}
	_, m, err := Read([]byte(lowLatencyHead + define + "#EXT-X-MAP:URI=\"{$v}.mp4\",BYTERANGE=\"80@20\"\n#EXT-X-PART:DURATION=0.5,URI=\"{$v}0.m4s\"\n#EXTINF:1,\n{$v}.m4s\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"{$v}1.m4s\"\n"))
	if err != nil || len(m.Segments) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	if s := m.Segments[0]; *s.Init != (Object{"x.mp4", 20, 80}) || s.URI != "x.m4s" || s.Parts[0].URI != "x0.m4s" || m.LowLatency.Hint.URI != "x1.m4s" {
		t.Errorf("%+v, hint %+v", s, m.LowLatency.Hint)
	}
}

func TestVariablesThatCannotBeFilledIn(t *testing.T) {
	from := sourceAt(t, "https://video.example.com/live/index.m3u8?line=a%0A%23EXT-X-ENDLIST&quote=%22&empty=&tag=%23EXT-X-ENDLIST", Variables{})
	define := func(name, value string) string {
		return fmt.Sprintf("#EXT-X-DEFINE:NAME=%q,VALUE=%q\n", name, value)
	}
	many := ""
	for i := range maxVariables {
		many += define(fmt.Sprint(i), "x")
	}
	if _, _, err := ReadFrom(from, mediaOfVariables(many, "{$127}.ts")); err != nil {
		t.Errorf("%d variables: %v", maxVariables, err)
	}
	for _, c := range []struct{ definitions, uri, want string }{
		{define("a", "x"), "{$b}.ts", "{$b} is not defined"},
		{define("a", "{$b}") + define("b", "x"), "a.ts", "{$b} is not defined"},
		{define("a", "x") + define("a", "y"), "a.ts", "\"a\" is defined twice"},
		{"#EXT-X-DEFINE:NAME=\"a\"\n", "a.ts", "\"a\" has no value"},
		{"#EXT-X-DEFINE:VALUE=\"a\"\n", "a.ts", "not one of"},
		{"#EXT-X-DEFINE:NAME=\"a\",VALUE=\"x\",IMPORT=\"b\"\n", "a.ts", "not one of"},
		{"#EXT-X-DEFINE:IMPORT=\"cdn\"\n", "a.ts", "imports \"cdn\""},
		{"#EXT-X-DEFINE:QUERYPARAM=\"token\"\n", "a.ts", "no parameter \"token\""},
		{"#EXT-X-DEFINE:QUERYPARAM=\"empty\"\n", "a.ts", "no parameter \"empty\""},
		{"#EXT-X-DEFINE:QUERYPARAM=\"line\"\n", "{$line}", "control character"},
		{"#EXT-X-DEFINE:QUERYPARAM=\"quote\"\n", "{$quote}", "quotation mark"},
		{"#EXT-X-DEFINE:QUERYPARAM=\"tag\"\n", "{$tag}", "a URI is \"#EXT-X-ENDLIST\""},
		{define("none", ""), "{$none}", "a URI is \"\""},
		{define("a", strings.Repeat("x", maxVariable)), "a.ts", "more than 8192 bytes"},
		{many + define("one more", "x"), "a.ts", "more than 128"},
	} {
		master, m, err := ReadFrom(from, mediaOfVariables(c.definitions, c.uri))
		if master != nil || m != nil || !errors.Is(err, ErrVariables) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80q, %s: %+v, %v", c.definitions, c.uri, m, err)
		}
	}
}

// TestShortTextDoesNotStandForMuch: values in values, and a long value in each of many lines.
func TestShortTextDoesNotStandForMuch(t *testing.T) {
	long := fmt.Sprintf("#EXT-X-DEFINE:NAME=\"a\",VALUE=%q\n", strings.Repeat("x", 8000))
	for name, text := range map[string][]byte{
		"values in values": mediaOfVariables(long+"#EXT-X-DEFINE:NAME=\"b\",VALUE=\""+strings.Repeat("{$a}", 1000)+"\"\n", "{$b}"),
		"in a line":        mediaOfVariables(long, strings.Repeat("{$a}", 500_000)),
		"in each line":     mediaOfVariables(long, "{$a}\n"+strings.Repeat("#EXTINF:4,\n{$a}\n", MaxSegments-1)),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := Read(text)
		runtime.ReadMemStats(&after)
		if allocated := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrVariables) || allocated > 64<<20 {
			t.Errorf("%s: %d bytes are allocated for a text of %d: %v", name, allocated, len(text), err)
		}
	}
}

// TestAParameterThatSelectsNoContentMayBeMissing: a viewer has a token in its URLs, which seeds and packagers do not have. Both name the
// segments alike.
func TestAParameterThatSelectsNoContentMayBeMissing(t *testing.T) {
	s := testSite(t) // its key leaves out session
	text := mediaOfVariables("#EXT-X-DEFINE:QUERYPARAM=\"session\"\n#EXT-X-DEFINE:IMPORT=\"dir\"\n", "{$dir}/a.ts?session={$session}&v=1")
	for path, fetched := range map[string]string{"/media/live/index.m3u8?session=7": "session=7&v=1", "/media/live/index.m3u8": "session=&v=1"} {
		_, r, err := List(s, path, Variables{"dir": "720p"}, text, time.Time{})
		if err != nil || len(r.Segments) != 1 || r.Segments[0].Name != "/media/live/720p/a.ts?v=1" || r.Segments[0].Path != "/media/live/720p/a.ts?"+fetched {
			t.Errorf("%s: %+v, %v", path, r, err)
		}
	}
	if _, _, err := List(s, "/media/live/index.m3u8", nil, mediaOfVariables("#EXT-X-DEFINE:QUERYPARAM=\"v\"\n", "a.ts?v={$v}"), time.Time{}); !errors.Is(err, ErrVariables) {
		t.Errorf("a parameter that selects content: %v", err)
	}
}

// FuzzVariables: what is filled in makes no tag of a text, and no more of it than the bound.
func FuzzVariables(f *testing.F) {
	f.Add("#EXT-X-DEFINE:NAME=\"a\",VALUE=\"x\"\n#EXT-X-DEFINE:IMPORT=\"b\"\n#EXTINF:4,\n{$a}{$b}.ts\n", "b", "y", "token=1")
	f.Add("#EXT-X-DEFINE:QUERYPARAM=\"t\"\n#EXT-X-MAP:URI=\"{$t}\"\n#EXTINF:4,\n{$t}\n", "b", "y", "t=%0a%22%23")
	f.Fuzz(func(t *testing.T, text, name, value, query string) {
		data := []byte("#EXTM3U\n#EXT-X-TARGETDURATION:4\n" + text)
		source := Source{URL: &url.URL{Path: "/a/b.m3u8", RawQuery: query}, Imports: Variables{name: value}}
		out, err := readable(data, newFiller(source, data))
		if err != nil {
			if !errors.Is(err, ErrVariables) {
				t.Errorf("%v", err)
			}
			return
		}
		tags := func(data []byte) (n int) {
			for line := range strings.Lines(string(data)) {
				if line[0] == '#' {
					n++
				}
			}
			return n
		}
		if len(out) > len(data)+MaxBytes || tags(out) > tags(data) || strings.Count(string(out), "\n") > strings.Count(string(data), "\n") {
			t.Errorf("%q became %q", data, out)
		}
	})
}
