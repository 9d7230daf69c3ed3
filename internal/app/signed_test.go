package app

import (
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/headless"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/viewer"
)

// linkOf signs a path as a site's backend does for nginx's secure_link; each viewer has a moment of its own.
func linkOf(path string, viewer int) string {
	expires := time.Now().Unix() + 3600 + int64(viewer)
	sum := md5.Sum(fmt.Appendf(nil, "%d%s s3cret", expires, path))
	return fmt.Sprintf("%s?md5=%s&expires=%d&u=%d", path, base64.RawURLEncoding.EncodeToString(sum[:]), expires, viewer)
}

// signingBackend gives each viewer playlists with signed URLs of its own, as sites do that have their films behind signatures.
func signingBackend(t *testing.T, dir, media string) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var viewer int
		if _, err := fmt.Sscan(r.URL.Query().Get("u"), &viewer); err != nil {
			http.Error(w, "sign in first", http.StatusForbidden)
			return
		}
		text, err := os.ReadFile(filepath.Join(dir, strings.TrimPrefix(r.URL.Path, "/film/")))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		lines := strings.Split(string(text), "\n")
		for i, line := range lines {
			switch {
			case line == "" || line[0] == '#':
			case strings.HasSuffix(line, ".m3u8"):
				lines[i] = fmt.Sprintf("%s?u=%d", line, viewer)
			default:
				lines[i] = media + linkOf("/film/a/"+line, viewer)
			}
		}
		w.Header().Set("Content-Type", "application/vnd.apple.mpegurl")
		_, _ = w.Write([]byte(strings.Join(lines, "\n")))
	}))
	t.Cleanup(s.Close)
	return s
}

// signedSite is a site whose media lie behind a real nginx with secure_link, and whose playlists are signed for each viewer. A seed signs
// for itself.
type signedSite struct {
	*seen
	backend string
	up      *running
}

func newSignedSite(t *testing.T, segments int, key string) *signedSite {
	t.Cleanup(func() { goleak.VerifyNone(t) }) // after those of nginx and the backend
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	s := &signedSite{seen: &seen{dir: noisyFilm(t, segments, 60_000)}}
	media := testkit.Nginx(t, `
    location /film/ {
      alias "`+s.dir+`/";
      secure_link $arg_md5,$arg_expires;
      secure_link_md5 "$secure_link_expires$uri s3cret";
      if ($secure_link != "1") { return 403; }
    }`)
	s.backend = signingBackend(t, s.dir, media).URL
	dir := t.TempDir()
	write(t, dir+"/link", "$secure_link_expires$uri s3cret\n")
	write(t, dir+"/site.yaml", fmt.Sprintf(`
name: mine
hosts: ["%s", "%s"]
fetch_base: %s
fetch_auth: {sign: nginx, key_file: "%s/link"}
page_origins: ["%s"]
key: %s
policy: {signed_manifests: share, certify_from: 1, control_group_permille: 0}
`, strings.TrimPrefix(s.backend, "http://"), strings.TrimPrefix(media, "http://"), media, dir, s.backend, key))
	write(t, dir+"/leeway.yaml", "tracker: {stats_interval: 1s}\n")
	s.up = startUp(t, "--site="+dir+"/site.yaml", "--config="+dir+"/leeway.yaml")
	return s
}

// watch has a viewer play, with a signature of its own.
func (s *signedSite) watch(t *testing.T, number int, played func(n int)) *headless.Viewer {
	n := 0
	v, err := headless.Start(viewer.Config{
		URL: fmt.Sprintf("%s/film/master.m3u8?u=%d", s.backend, number), Tracker: "ws" + strings.TrimPrefix(s.up.page, "http") + "/", Origin: s.backend,
		Speed: 2, JoinAfter: -1, Buffer: 5 * time.Second,
		OnSegment: func(r *viewer.Result) {
			r.URL, _, _ = strings.Cut(r.URL, "?")
			s.take(r)
			n++
			played(n)
		},
	}, headless.Network{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

// TestViewersOfSignedURLsShare: the second viewer plays what the first one and the seed hold.
func TestViewersOfSignedURLsShare(t *testing.T) {
	const segments = 12
	s := newSignedSite(t, segments, "{presets: [nginx], ignore_query: [u]}")
	half := make(chan struct{})
	first := s.watch(t, 0, func(n int) {
		if n == segments/2 {
			close(half)
		}
	})
	select {
	case <-half:
	case <-time.After(60 * time.Second):
		t.Fatalf("the first viewer does not play\n%s", s.up.errs)
	}
	for i, v := range []*headless.Viewer{first, s.watch(t, 1, func(int) {})} {
		select {
		case <-v.Done():
		case <-time.After(60 * time.Second):
			t.Fatalf("viewer %d still plays", i)
		}
		sum := v.Summary()
		t.Logf("viewer %d: %v %v", i, sum.Stats.Bytes, sum.Stats.Reasons)
		if sum.Ended != "end" || sum.Error != "" {
			t.Errorf("viewer %d: %s %s", i, sum.Ended, sum.Error)
		}
		if i == 1 && sum.Stats.Bytes["peer"]+sum.Stats.Bytes["seed"] == 0 {
			t.Errorf("the second viewer shared nothing\n%s", s.up.errs)
		}
	}
	if len(s.wrong) > 0 {
		t.Errorf("played what the origin does not have: %v", s.wrong)
	}
}

// TestATrackerNamesParametersThatKeepViewersApart: the same site without a word on signatures shares nothing, and the log says why.
func TestATrackerNamesParametersThatKeepViewersApart(t *testing.T) {
	s := newSignedSite(t, 12, "{ignore_query: [u]}")
	v := s.watch(t, 0, func(int) {})
	testkit.Eventually(t, "hinted at", func() bool { return strings.Contains(s.up.errs.String(), "key.ignore_query") })
	v.Close()
	if text := s.up.errs.String(); !strings.Contains(text, "expires") || !strings.Contains(text, "md5") || !strings.Contains(text, "nginx") || strings.Contains(text, "s3cret") {
		t.Error(text)
	}
}

func TestUpNamesTheKeyOfWrongFetchAuth(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/headers", "Authorization Bearer hush\n")
	write(t, dir+"/link", "$uri$remote_addr hush\n")
	const site = "name: mine\nhosts: [video.example.com]\nfetch_base: https://origin.example.com\npolicy: {signed_manifests: share}\n"
	for auth, want := range map[string]string{
		"fetch_auth: {headers_file: " + dir + "/headers}":          "fetch_auth.headers_file",
		"fetch_auth: {sign: nginx, key_file: " + dir + "/link}":    "$remote_addr",
		"fetch_auth: {sign: nginx, key_file: " + dir + "/missing}": "fetch_auth.key_file",
		"fetch_auth: {sign: acme, key_file: " + dir + "/link}":     "fetch_auth.sign",
	} {
		write(t, dir+"/site.yaml", site+auth+"\n")
		_, errs, code := leeway(t, nil, "up", "--site", dir+"/site.yaml", "--listen=127.0.0.1:0", "--admin=127.0.0.1:0", "--seed-listen=127.0.0.1:0", "--data-dir="+dir)
		if code != 2 || !strings.Contains(errs, want) || strings.Contains(errs, "hush") {
			t.Errorf("%s: %d %s", auth, code, errs)
		}
	}
}
