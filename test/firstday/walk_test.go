package firstday

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/leeway-video/leeway/internal/testkit"
)

// walk is an empty folder on a machine with the program, in which commands of documents are run as they stand.
type walk struct {
	t       *testing.T
	dir     string
	environ []string
}

// newWalk builds the program. The walk takes its time, so it is not part of every test run.
func newWalk(t *testing.T) *walk {
	if os.Getenv("LEEWAY_FIRSTDAY") == "" {
		t.Skip("make firstday runs this")
	}
	t.Parallel() // it waits for films most of the time
	w := &walk{t: t, dir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(w.dir, "build"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.environ = []string{
		"HOME=" + w.dir, "PATH=" + filepath.Join(w.dir, "build") + ":" + os.Getenv("PATH"),
		"LEEWAY_UP_LISTEN=127.0.0.1:0", "LEEWAY_UP_ADMIN=127.0.0.1:0", "LEEWAY_SEED_LISTEN=127.0.0.1:0", "LEEWAY_PROBE_LISTEN=127.0.0.1:0",
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(w.dir, "build/leeway"), "../../cmd/leeway").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return w
}

// the is the one block of a document that has a text in it.
func (w *walk) the(document, language, has string) string {
	w.t.Helper()
	var found []string
	for _, b := range blocks(w.t, document) {
		if b.language == language && strings.Contains(b.text, has) {
			found = append(found, b.text)
		}
	}
	if len(found) != 1 {
		w.t.Fatalf("%s has %d blocks of %s with %q", document, len(found), language, has)
	}
	return found[0]
}

func (w *walk) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// sh runs commands and fails where one of them does.
func (w *walk) sh(commands string) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir, cmd.Env = w.dir, w.environ
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Errorf("%s\n%v\n%s", commands, err, out)
	}
	return string(out)
}

// start runs a command that serves until the test ends, and waits for what it prints.
func (w *walk) start(command string, printed *regexp.Regexp) string {
	w.t.Helper()
	var out testkit.Output
	cmd := exec.Command("bash", "-c", "exec "+command)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = w.dir, w.environ, &out, &out
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			w.t.Errorf("%s: %v\n%s", command, err, out.String())
		}
	})
	testkit.Eventually(w.t, command, func() bool { return printed.MatchString(out.String()) })
	return printed.FindStringSubmatch(out.String())[1]
}

// film encodes one of the operator's own: as segments of TS, as fMP4, and as byte ranges of one file.
// It is long enough for the doctor, whose viewers play four times as fast.
func (w *walk) film() {
	w.t.Helper()
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		w.t.Skip("ffmpeg is not installed: the walk needs a film")
	}
	for kind, args := range map[string]string{"ts": "", "fmp4": "-hls_segment_type fmp4", "ranges": "-hls_flags single_file"} {
		w.sh("mkdir -p media/" + kind + " && ffmpeg -v error -f lavfi -i testsrc2=s=320x180:r=10:d=40 -c:v libx264 -preset ultrafast -g 20 -b:v 400k " +
			"-f hls -hls_time 2 -hls_playlist_type vod " + args + " media/" + kind + "/index.m3u8")
	}
}

// shared plays a film in two viewers. The second one comes when the first has a link, and takes at least a piece of a segment from it or
// from the seed; more is for both of them. At this speed the buffer is a third of the film: more would be fetched before there is a link.
func (w *walk) shared(one, two, first, second, more string) {
	w.t.Helper()
	w.sh(fmt.Sprintf(`log=$(mktemp)
leeway viewer --speed 4 --buffer 3s %[1]s --tracker %[2]s '%[4]s' 2>$log & first=$!
until grep -q 'links [1-9]' $log; do kill -0 $first || { cat $log; exit 1; }; sleep 0.1; done
leeway viewer --speed 4 --buffer 3s %[1]s --fail-on no-peers --tracker %[3]s '%[5]s' && wait $first`, more, one, two, first, second))
}

// TestAPageOfOnesOwn walks "Trying it on a page of yours" with nginx and a film of one's own.
func TestAPageOfOnesOwn(t *testing.T) {
	const embedding = "../../docs/embedding.md"
	w := newWalk(t)
	w.film()
	media := testkit.Nginx(t, `location / { root "`+w.dir+`/media"; types { application/vnd.apple.mpegurl m3u8; video/mp2t ts; video/mp4 mp4 m4s; } add_header Access-Control-Allow-Origin *; }`)
	host := strings.TrimPrefix(media, "http://")
	w.write("my-site.yaml", strings.ReplaceAll(w.the(embedding, "yaml", "# my-site.yaml"), "localhost:9002", host))
	commands := strings.Split(strings.TrimSpace(w.the(embedding, "sh", "up --site my-site.yaml")), "\n")
	i := slices.IndexFunc(commands, func(c string) bool { return strings.Contains(c, "leeway up") })
	w.sh(strings.Join(commands[:i], "\n"))
	page := w.start(comment.ReplaceAllString(commands[i], ""), regexp.MustCompile(`(https?://\S+)/\n`))
	tracker := "ws" + strings.TrimPrefix(page, "http")
	for _, kind := range []string{"ts", "fmp4", "ranges"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w, manifest := &walk{t: t, dir: w.dir, environ: w.environ}, media+"/"+kind+"/index.m3u8"
			w.shared(tracker, tracker, manifest, manifest, "--fail-on errors")
			if out := w.sh(fmt.Sprintf("leeway doctor --tracker %s --page-origin http://localhost:3000 %s", tracker, manifest)); !strings.Contains(out, "ok       piece") {
				t.Errorf("doctor: %s", out)
			}
		})
	}
}

// TestPlainMachines walks what of "On plain machines" needs no init system: its secrets, its configuration, and the services that are
// started from both, with two trackers, on a bus of its own and with a relay.
func TestPlainMachines(t *testing.T) {
	const host = "../../docs/operations/host.md"
	w := newWalk(t)
	deploy, err := filepath.Abs("../../deploy/host")
	if err != nil {
		t.Fatal(err)
	}
	here := strings.NewReplacer("/etc/leeway", w.dir+"/etc")
	w.sh("mkdir etc && cp " + filepath.Join(deploy, "leeway.yaml") + " " + filepath.Join(deploy, "nats.conf") + " etc/")
	w.sh(here.Replace(w.the(host, "sh", "LEEWAY_RELAY_SECRET=")))
	check, _, _ := strings.Cut(w.the(host, "sh", "config check /etc/leeway/leeway.yaml"), "\n")
	w.sh(here.Replace(check))
	for _, name := range []string{"relay.env", "nats.env", "tracker.env", "seed.env"} {
		if info, err := os.Stat(filepath.Join(w.dir, "etc", name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	media := siteToBeginWith(w)
	admins := map[string]string{}
	service := func(name, more, printed string) string {
		line := w.start(fmt.Sprintf("bash -c 'set -a; . etc/relay.env; [ ! -e etc/%[1]s.env ] || . etc/%[1]s.env; LEEWAY_NATS_USER=%[1]s; %s exec leeway %[1]s --config etc/leeway.yaml'", name, more),
			regexp.MustCompile(`("msg":"`+name+` is up"[^\n]*)\n`))
		admins[name] = regexp.MustCompile(`"admin":"([^"]+)"`).FindStringSubmatch(line)[1]
		return regexp.MustCompile(`"` + printed + `":"([^"]+)"`).FindStringSubmatch(line)[1]
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "etc/leeway.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	relay := service("turn", "LEEWAY_TURN_LISTEN=127.0.0.1:0 LEEWAY_TURN_ADMIN=127.0.0.1:0", "listen")
	w.write("etc/leeway.yaml", strings.NewReplacer("media.example.com", strings.TrimPrefix(media, "https://"), "https://media.example.com", media,
		"turn.example.com:3478", relay, "/var/lib/leeway", w.dir,
		"    access: public", "    policy: {certify_from: 1, control_group_permille: 0} # no viewer of the walk is drawn into the control group\n    access: public").Replace(string(text)))
	w.environ = append(w.environ, "LEEWAY_NATS_URL="+bus(t, w))
	more := "LEEWAY_TRACKER_SECRET=" + strings.TrimSpace(w.sh("leeway secret")) + " LEEWAY_TRACKER_LISTEN=127.0.0.1:0 LEEWAY_TRACKER_ADMIN=127.0.0.1:0"
	one, two := service("tracker", more, "listen"), service("tracker", more+" LEEWAY_TRACKER_DATA_DIR="+w.dir+"/two", "listen")
	service("seed", "LEEWAY_SEED_LISTEN=127.0.0.1:0 LEEWAY_SEED_ADMIN=127.0.0.1:0", "udp")
	manifest := media + "/film/master.m3u8"
	proxied := "wss://" + overTLS(w, w.the(host, "nginx", "server_name tracker.example.com"), proxySnippet(w, two)...)
	w.shared("ws://"+one, proxied, manifest, manifest, "")
	// The doctor as the document calls it, for addresses of this walk. The machine's own limits may be too low, which is a warning.
	out := w.sh(strings.NewReplacer("/etc/leeway", w.dir+"/etc", "wss://tracker.example.com", proxied,
		"https://media.example.com/film/master.m3u8", manifest).Replace(w.the(host, "sh", "leeway doctor --config")))
	if !strings.Contains(out, "turn:"+relay+" gave the relayed address") || !strings.Contains(out, "ok       nats") || !strings.Contains(out, "WebSocket open; the TLS certificate is valid") || !strings.Contains(out, "ok       origin") {
		t.Errorf("doctor: %s", out)
	}
	scraped(w, admins)
}

// siteToBeginWith is that of the page: a film of one's own that is only packaged, a page, and nginx with TLS before both. It returns the
// origin of the films.
func siteToBeginWith(w *walk) string {
	w.t.Helper()
	const host = "../../docs/operations/host.md"
	for _, tool := range []string{"openssl", "ffmpeg"} {
		if _, err := exec.LookPath(tool); err != nil {
			w.t.Skipf("%s is not installed: a site has a certificate and a film", tool)
		}
	}
	w.sh("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=tracker -addext subjectAltName=IP:127.0.0.1 -keyout privkey.pem -out fullchain.pem 2>&1")
	w.environ = append(w.environ, "SSL_CERT_FILE="+filepath.Join(w.dir, "fullchain.pem"))
	w.sh("ffmpeg -v error -f lavfi -i testsrc2=s=320x180:r=10:d=60 -f lavfi -i sine=d=60 -c:v libx264 -preset ultrafast -g 20 -b:v 400k -c:a aac film.mp4")
	packaging, player, found := strings.Cut(w.the(host, "sh", "ffmpeg -i film.mp4"), "npm pack ")
	if !found || !strings.Contains(player, "package/dist/hls.min.js") {
		w.t.Errorf("the page does not get its player: %s", player)
	}
	w.sh(strings.ReplaceAll(packaging, "/var/www", w.dir+"/www"))
	w.write("www/page/index.html", w.the(host, "html", "index.html"))
	at := [2]string{}
	for i, name := range []string{"www", "media"} {
		at[i] = overTLS(w, w.the(host, "nginx", "server_name "+name+".example.com"), "/var/www", w.dir+"/www")
	}
	if page := w.sh("curl --silent --fail --cacert fullchain.pem https://" + at[0] + "/"); !strings.Contains(page, "https://media.example.com/film/master.m3u8") {
		w.t.Errorf("the page: %s", page)
	}
	return "https://" + at[1]
}

// overTLS runs a server of the page with the certificate of this walk, and with other texts replaced.
func overTLS(w *walk, block string, replaced ...string) string {
	w.t.Helper()
	return testkit.NginxServer(w.t, strings.NewReplacer(append(replaced, "/etc/letsencrypt/live/tracker.example.com", w.dir)...).Replace(block))
}

// proxySnippet is what the page includes in the server of a tracker, for a tracker of this walk.
func proxySnippet(w *walk, tracker string) (replaced []string) {
	w.t.Helper()
	snippet, err := os.ReadFile("../../deploy/host/nginx.conf")
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("nginx.conf", strings.ReplaceAll(string(snippet), "127.0.0.1:8080", tracker))
	return []string{"/etc/nginx/snippets/leeway.conf", filepath.Join(w.dir, "nginx.conf")}
}

// scraped runs Prometheus with the file and the rules of the page, for the ports of this walk, until it has every service.
func scraped(w *walk, admins map[string]string) {
	w.t.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		w.t.Log("prometheus is not installed: nothing scrapes the services")
		return
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		w.t.Fatal(err)
	}
	copies, rest, _ := strings.Cut(w.the("../../docs/operations/host.md", "sh", "cp deploy/host/prometheus.yml"), "\n")
	check, _, _ := strings.Cut(rest, "\n")
	here := strings.NewReplacer("deploy/host/", root+"/deploy/host/", "alerts/", root+"/alerts/", "/etc/prometheus", w.dir+"/prometheus")
	w.sh("mkdir prometheus && " + here.Replace(copies))
	text, err := os.ReadFile(filepath.Join(w.dir, "prometheus/prometheus.yml"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.write("prometheus/prometheus.yml", strings.NewReplacer("127.0.0.1:9464", admins["tracker"], "127.0.0.1:9465", admins["seed"], "127.0.0.1:9466", admins["turn"],
		"scrape_interval: 15s", "scrape_interval: 1s").Replace(string(text)))
	w.sh(here.Replace(check))
	at := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)) // systems give connections other ports
	w.start(binary+" --config.file=prometheus/prometheus.yml --storage.tsdb.path=prometheus/data --web.listen-address="+at, regexp.MustCompile(`(Server is ready)`))
	for _, name := range []string{"tracker", "seed", "turn"} {
		var answer string
		testkit.Eventually(w.t, name+" is scraped", func() bool {
			response, err := http.Get("http://" + at + "/api/v1/query?query=" + url.QueryEscape(`up{service="`+name+`"} == 1`))
			if err != nil {
				return false
			}
			defer response.Body.Close()
			body, _ := io.ReadAll(response.Body)
			answer = string(body)
			return strings.Contains(answer, admins[name])
		})
	}
	if out := w.sh("exec 3<>/dev/tcp/" + strings.Replace(at, ":", "/", 1) + " && printf 'GET /api/v1/rules HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3"); !strings.Contains(out, "LeewayNoTracker") || strings.Contains(out, `"health":"err"`) {
		w.t.Errorf("rules: %s", out)
	}
}

// bus is a NATS server with the configuration and passwords of the walk.
func bus(t *testing.T, w *walk) string {
	text, err := os.ReadFile(filepath.Join(w.dir, "etc/nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	resolved := string(text)
	for line := range strings.Lines(w.sh("cat etc/nats.env")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		resolved = strings.ReplaceAll(resolved, "$"+name, strconv.Quote(value))
	}
	w.write("etc/nats-here.conf", resolved)
	options, err := server.ProcessConfigFile(filepath.Join(w.dir, "etc/nats-here.conf"))
	if err != nil {
		t.Fatal(err)
	}
	options.Port, options.NoSigs = server.RANDOM_PORT, true
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("NATS does not start")
	}
	return s.ClientURL()
}
