package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// TestUpOverTLS: page, script and WebSocket come over TLS under the certificate's name, and the page is told so.
func TestUpOverTLS(t *testing.T) {
	film := testkit.TinyFilm(t)
	dir := t.TempDir()
	cert, key := writePair(t, dir, "film.test")
	r := startUp(t, "--media", film, "--tls-cert", cert, "--tls-key", key)
	name, port, err := net.SplitHostPort(strings.TrimPrefix(r.page, "https://"))
	if err != nil || name != "film.test" {
		t.Fatalf("page %s: %v", r.page, err)
	}
	if tag := `src="//film.test:` + port + `/leeway.js" data-tracker="wss://film.test:` + port + `/"`; !strings.Contains(r.out.String(), tag) {
		t.Errorf("no %s in\n%s", tag, r.out)
	}
	trusted := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	text, err := os.ReadFile(cert)
	if err != nil || !trusted.RootCAs.AppendCertsFromPEM(text) {
		t.Fatal("the certificate is not read: ", err)
	}
	here := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
	}
	transport := &http.Transport{TLSClientConfig: trusted, DialContext: here, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	for _, path := range []string{"/leeway.js", PictureConfig{Media: film}.path() + "master.m3u8"} {
		answer, err := (&http.Client{Transport: transport}).Get(r.page + path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK || answer.ProtoMajor != 1 {
			t.Errorf("%s: %s, HTTP/%d", path, answer.Status, answer.ProtoMajor)
		}
	}
	dialer := websocket.Dialer{TLSClientConfig: trusted, NetDialContext: here, Subprotocols: []string{signal.Subprotocol}}
	for origin, want := range map[string]int{r.page: http.StatusSwitchingProtocols, "https://elsewhere.test": http.StatusForbidden} {
		c, answer, err := dialer.Dial("wss"+strings.TrimPrefix(r.page, "https")+"/", http.Header{"Origin": {origin}})
		if answer == nil || answer.StatusCode != want {
			t.Errorf("a page of %s: %v", origin, err)
		}
		if c != nil {
			_ = c.Close()
		}
	}
}

func TestHalfACertificateIsSaid(t *testing.T) {
	_, errs, code := leeway(t, nil, "up", "--tls-cert", "cert.pem")
	if code != 2 || !strings.Contains(errs, "tracker.cert_file: and tracker.key_file belong together") {
		t.Errorf("%d %s", code, errs)
	}
}
