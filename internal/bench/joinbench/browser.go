package joinbench

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/netlab"
)

// pageAddress is where the browser finds the page: loopback, for a page over plain HTTP from elsewhere is not a secure
// context. What is behind it comes over the viewer's line.
const pageAddress = "127.0.0.1:8080"

// reportPath is the proxy's own and does not cross the line.
const reportPath = "/bench/join"

//go:embed page.js
var pageScript string

// browserFlags are a user's defaults but for what a machine without a screen and a way to the world needs.
var browserFlags = []string{
	"--headless", "--no-sandbox", "--no-first-run", "--mute-audio", "--disable-gpu", "--disable-background-networking",
	"--disable-component-update", "--disable-sync", "--disable-quic",
}

// told is what the page tells of its first piece; moments are of its own clock, ms.
type told struct {
	Session     map[string]float64 `json:"session"`
	Link        map[string]any     `json:"link"` // moments, and role
	Piece       []byte             `json:"piece"`
	Number      int                `json:"number"`
	Certificate []byte             `json:"certificate"`
}

// browse has Chromium open the demo page on a host, and returns what its library told of the first piece.
func browse(ctx context.Context, host *netlab.Host, servers string) (_ *told, err error) {
	listener, err := host.Listen(ctx, "tcp", pageAddress)
	if err != nil {
		return nil, err
	}
	said := make(chan *told, 1)
	server := &http.Server{Handler: page(host.DialContext, servers, said), ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() { _ = server.Close(); <-served }()
	profile, err := os.MkdirTemp("", "leeway-bench-join-browser-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(profile)) }()
	command := os.Getenv("LEEWAY_CHROMIUM")
	if command == "" {
		command = "chromium"
	}
	cmd := host.Command(ctx, command, append(browserFlags, "--user-data-dir="+profile, "http://"+pageAddress+"/")...)
	cmd.Env = append(os.Environ(), "HOME="+profile)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the browser: %w", err)
	}
	defer func() { _ = cmd.Cancel(); _ = cmd.Wait() }()
	late := time.NewTimer(browserWait)
	defer late.Stop()
	select {
	case t := <-said:
		return t, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-late.C:
		return nil, fmt.Errorf("the browser got no piece of a peer within %s", browserWait)
	}
}

// page is the proxy between the browser and the servers: everything as it is, but for the script in the demo page.
func page(dial func(ctx context.Context, network, address string) (net.Conn, error), servers string, said chan<- *told) http.Handler {
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: servers})
			r.Out.Header.Del("Accept-Encoding")
		},
		Transport:     &http.Transport{DialContext: dial, DisableCompression: true, MaxIdleConnsPerHost: 8},
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Path != "/" || r.StatusCode != http.StatusOK {
				return nil // the tracker's socket is at the same place
			}
			body, err := io.ReadAll(r.Body)
			_ = r.Body.Close()
			if err != nil {
				return err
			}
			body = bytes.Replace(body, []byte("<head>"), []byte("<head><script>"+pageScript+"</script>"), 1)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Header.Set("Content-Length", strconv.Itoa(len(body)))
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != reportPath {
			forward.ServeHTTP(w, r)
			return
		}
		t := &told{}
		if err := json.NewDecoder(r.Body).Decode(t); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case said <- t:
		default: // it has told already
		}
	})
}

// values are the legs, in ms since the hello, once the piece is found to match. The library joins when the first picture
// is there; what it waits for that is no leg, and is taken out.
func (t *told) values(rtt time.Duration) (map[string]float64, error) {
	c, err := certificate.Parse(t.Certificate)
	if err != nil {
		return nil, err
	}
	if !c.CheckPiece(t.Number, t.Piece) {
		return nil, errors.New("the piece that the browser got does not match its certificate")
	}
	waited := max(0, t.Session["join"]-t.Session["welcome"])
	values := map[string]float64{"waited": waited}
	for _, leg := range legs {
		at, ok := t.Session[leg]
		if linked, is := t.Link[leg].(float64); is {
			at, ok = linked, true
		}
		if !ok {
			continue
		}
		if values[leg] = at - t.Session["hello"]; at > t.Session["welcome"] {
			values[leg] -= waited
		}
	}
	values["round_trips"] = values["piece"] / float64(rtt.Milliseconds())
	return values, nil
}
