package doctor_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/app"
	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/testkit"
)

// length of a film in segments: long enough that links open while it is shown four times as fast.
const length = 20

// film is a web server with a film of segments of a second below /f/, and what is wrong with it.
type film struct {
	*httptest.Server
	name     string                                            // of the manifest; empty: master.m3u8
	query    func() string                                     // of each segment's URL
	folder   func() string                                     // before each segment's name
	header   map[string]string                                 // of segments
	cors     bool                                              // everything may be read by any page
	answer   func(w http.ResponseWriter, r *http.Request) bool // answers instead; false: it does not
	segments map[string][]byte
	seconds  float64 // of each segment; 0: 1
}

func newFilm(t *testing.T, change func(*film)) *film {
	t.Helper()
	f := &film{query: func() string { return "" }, folder: func() string { return "" }, segments: map[string][]byte{}, cors: true}
	for i := range length {
		b := make([]byte, 40_000+i)
		_, _ = rand.Read(b)
		f.segments[fmt.Sprintf("seg-%d.ts", i)] = b
	}
	if change != nil {
		change(f)
	}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *film) serve(w http.ResponseWriter, r *http.Request) {
	if f.cors {
		w.Header().Set("Access-Control-Allow-Origin", "*")
	}
	if f.answer != nil && f.answer(w, r) {
		return
	}
	name := filepath.Base(r.URL.Path)
	switch body := f.segments[name]; {
	case !strings.HasPrefix(r.URL.Path, "/f/"):
		http.NotFound(w, r)
	case name == "master.m3u8":
		_, _ = w.Write([]byte("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=320000\nlist.m3u8\n"))
	case name == "film.mpd":
		_, _ = fmt.Fprintf(w, `<MPD type="static" mediaPresentationDuration="PT%dS"><Period><AdaptationSet mimeType="video/mp4">
			<SegmentTemplate duration="1" startNumber="0" media="seg-$Number$.ts"/><Representation id="low" bandwidth="320000"/></AdaptationSet></Period></MPD>`, len(f.segments))
	case name == "list.m3u8":
		seconds := cmp.Or(f.seconds, 1)
		text := fmt.Sprintf("#EXTM3U\n#EXT-X-TARGETDURATION:%d\n", int(seconds))
		for i := range len(f.segments) {
			text += fmt.Sprintf("#EXTINF:%g,\n%sseg-%d.ts%s\n", seconds, f.folder(), i, f.query())
		}
		_, _ = w.Write([]byte(text + "#EXT-X-ENDLIST\n"))
	case body != nil:
		for k, v := range f.header {
			w.Header().Set(k, v)
		}
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
	default:
		http.NotFound(w, r)
	}
}

func (f *film) manifest() string { return f.URL + "/f/" + cmp.Or(f.name, "master.m3u8") }
func (f *film) host() string     { return strings.TrimPrefix(f.URL, "http://") }

// site is a site of the configuration whose film this is.
func (f *film) site(name string, more map[string]any) map[string]any {
	s := map[string]any{"name": name, "hosts": []string{f.host()}, "fetch_base": f.URL, "access": "public", "policy": map[string]any{"control_group_permille": 0}}
	for k, v := range more {
		if s[k] = v; v == nil {
			delete(s, k)
		}
	}
	return s
}

// leeway runs a command to its end.
func leeway(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err := app.Run(t.Context(), args, app.Env{Stdout: &stdout, Stderr: &stderr, Environ: []string{"HOME=" + t.TempDir()}})
	if err != nil {
		stderr.WriteString(err.Error())
	}
	return stdout.String(), stderr.String(), cmdline.ExitCode(err)
}

// ports are those that tests have given away.
var ports atomic.Uint32

// freePort is an address that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	for range 200 {
		at := fmt.Sprintf("127.0.0.1:%d", 33_000+ports.Add(1)+uint32(os.Getpid())%4000)
		if l, err := net.Listen("tcp", at); err == nil {
			_ = l.Close()
			return at
		}
	}
	t.Fatal("no port is free")
	return ""
}

// written writes a configuration.
func written(t *testing.T, sections map[string]any) string {
	t.Helper()
	text, err := json.Marshal(sections)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "leeway.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// service runs a service until the test ends, and returns when its admin port says that it is ready.
func service(t *testing.T, admin string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var log testkit.Output
	ended := make(chan error, 1)
	go func() {
		ended <- app.Run(ctx, args, app.Env{Stdout: &log, Stderr: &log, Environ: []string{"HOME=" + t.TempDir()}})
	}()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("leeway %v: %v", args, err)
		}
	})
	t.Cleanup(stop)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(30 * time.Second); ; {
		if res, err := client.Get("http://" + admin + "/readyz"); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-deadline:
			t.Fatalf("leeway %v is not ready:\n%s", args, log.String())
		case <-tick.C:
		}
	}
}

// pair is a certificate for 127.0.0.1 that ends then, and the roots that trust it.
func pair(t *testing.T, ends time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: ends.AddDate(0, -3, 0), NotAfter: ends, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, roots
}

// overTLS is a server with this certificate.
func overTLS(t *testing.T, cert tls.Certificate, h http.Handler) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	s.Config.ErrorLog = quiet
	s.StartTLS()
	t.Cleanup(s.Close)
	return "wss" + strings.TrimPrefix(s.URL, "https") + "/"
}

// packed has a film's server send a text packed by gzip, whatever is asked for.
func packed(text string) func(*film) {
	return func(f *film) {
		f.answer = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, text)
			_ = z.Close()
			return true
		}
	}
}
