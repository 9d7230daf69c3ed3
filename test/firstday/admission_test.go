package firstday

import (
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
)

// TestJoinTokens walks "Join tokens": keys, a site that wants tokens, a viewer with one and one without.
func TestJoinTokens(t *testing.T) {
	const access = "../../docs/operations/access.md"
	w := newWalk(t)
	w.film()
	w.sh(w.the(access, "sh", "token keygen signing.jwk"))
	w.sh(strings.ReplaceAll(w.the(access, "sh", "--title trailer-7"), "mint ", "mint --life 5m "))
	media := testkit.Nginx(t, `location / { root "`+w.dir+`/media"; }`)
	site := strings.NewReplacer("sites:\n", "", "  - name", "    name", "/etc/leeway-tokens", w.dir).Replace(w.the(access, "yaml", "token_keys:"))
	w.write("site.yaml", dedented(site)+fmt.Sprintf("hosts: ['%s']\nfetch_base: %s\npolicy: {certify_from: 1, control_group_permille: 0}\n", strings.TrimPrefix(media, "http://"), media))
	tracker := "ws" + strings.TrimPrefix(w.start("leeway up --site site.yaml", regexp.MustCompile(`(https?://\S+)/\n`)), "http")
	w.sh("leeway token mint --key signing.jwk --site main --title /ts >token")
	film := media + "/ts/index.m3u8"
	w.shared(tracker, tracker, film, film, "--token-file token")
	if out := w.sh(fmt.Sprintf("leeway doctor --tracker %s %s || [ $? = 1 ]", tracker, film)); !strings.Contains(out, "[token-required]") {
		t.Errorf("doctor: %s", out)
	}
}

// TestSignedURLs walks "Signed URLs": nginx keeps the segments behind secure_link, two viewers have signatures of their own, and the seed
// signs for itself, with the parts of a configuration that the page shows.
func TestSignedURLs(t *testing.T) {
	const page = "../../docs/operations/signed-urls.md"
	w := newWalk(t)
	w.film()
	media := testkit.Nginx(t, `location /lists/ { root "`+w.dir+`"; } location /film/ {
      alias "`+w.dir+`/media/ts/";
      secure_link $arg_md5,$arg_expires;
      secure_link_md5 "$secure_link_expires$uri s3cret";
      if ($secure_link != "1") { return 403; }
    }`)
	w.sh("mkdir lists")
	for viewer, name := range []string{"lists/one.m3u8", "lists/two.m3u8"} {
		w.write(name, signed(t, filepath.Join(w.dir, "media/ts/index.m3u8"), time.Now().Unix()+3600+int64(viewer)))
	}
	w.write("secure-link", "$secure_link_expires$uri s3cret\n")
	site := strings.NewReplacer("sites:\n", "", "  - name", "    name", "cloudfront]", "nginx]").Replace(w.the(page, "yaml", "ignore_query:"))
	seed := regexp.MustCompile(`(?m)^ *headers_file:.*\n`).ReplaceAllString(w.the(page, "yaml", "fetch_auth:"), "")
	seed = strings.NewReplacer("# sign: nginx", "sign: nginx", "# key_file: /etc/leeway/secure-link", "key_file: "+w.dir+"/secure-link", "https://media.example.com", media,
		"share}", "share, certify_from: 1, control_group_permille: 0}").Replace(seed)
	w.write("site.yaml", strings.ReplaceAll(dedented(site)+dedented(seed), "[media.example.com]", "['"+strings.TrimPrefix(media, "http://")+"']"))
	tracker := "ws" + strings.TrimPrefix(w.start("leeway up --site site.yaml", regexp.MustCompile(`(https?://\S+)/\n`)), "http")
	w.shared(tracker, tracker, media+"/lists/one.m3u8", media+"/lists/two.m3u8", "--fail-on errors")
}

// signed is a playlist as a backend gives it to a viewer: each segment has a signature that ends at a moment of the viewer's own.
func signed(t *testing.T, file string, expires int64) string {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if line != "" && line[0] != '#' {
			path := "/film/" + line
			sum := md5.Sum(fmt.Appendf(nil, "%d%s s3cret", expires, path))
			lines[i] = fmt.Sprintf("%s?md5=%s&expires=%d", path, base64.RawURLEncoding.EncodeToString(sum[:]), expires)
		}
	}
	return strings.Join(lines, "\n")
}
