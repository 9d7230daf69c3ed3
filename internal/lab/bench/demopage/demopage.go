// Package demopage has the demo page watched by the machine's Chromium on a host of a lab, behind a proxy that lets the
// page tell a bench how it goes.
package demopage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// address is where a viewer's browser finds the page: on loopback, because a page over plain HTTP from anywhere else is
// not a secure context and has no WebCrypto. What is behind it comes over the viewer's line.
const address = "127.0.0.1:8080"

// flags are a user's defaults but for what a machine without a window server, a GPU and a way to the world needs.
// Background throttling, mDNS names for addresses and local network access stay as users have them.
var flags = []string{
	"--headless", "--no-sandbox", "--no-first-run", "--mute-audio", "--disable-gpu", "--disable-background-networking",
	"--disable-component-update", "--disable-sync", "--disable-quic",
}

// Page is what a browser opens.
type Page struct {
	http.Handler

	transport *http.Transport
}

// Moved has no connection used again that was made in another network, as a browser does that is told of a change.
func (p *Page) Moved() { p.transport.CloseIdleConnections() }

// Proxy passes page, script, tracker and film of the servers (HOST:PORT) on, unchanged but for head, which is put into
// the page's head.
func Proxy(dial func(ctx context.Context, network, address string) (net.Conn, error), servers, head string) *Page {
	transport := &http.Transport{DialContext: dial, DisableCompression: true, MaxIdleConnsPerHost: 8}
	return &Page{transport: transport, Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: servers})
			if r.In.URL.Path == "/" {
				r.Out.Header.Del("Accept-Encoding")
			}
		},
		Transport:     transport,
		FlushInterval: -1, // as it comes
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Path != "/" || r.StatusCode != http.StatusOK {
				return nil // the tracker's socket is at the same place
			}
			return inject(r, head)
		},
		// A browser that gives up a request is nothing to report.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}}
}

// toldAt is the proxy's own: what is said there does not cross the line.
const toldAt = "/bench/told"

// toldBound is the most that a page may say at once, bytes.
const toldBound = 1 << 20

// Hush is for the head of a page whose drawing is to stay out of a measurement: it is the same with Leeway and without,
// its pictures of the swarm are not.
const Hush = `<style>.picture, .share, .timeline, header { display: none !important }</style>`

// Telling is Proxy for a page that tells how it goes: what it posts to /bench/told is for told to read.
func Telling(dial func(ctx context.Context, network, address string) (net.Conn, error), servers, head string, told func(io.Reader) error) *Page {
	forward := Proxy(dial, servers, head)
	return &Page{transport: forward.transport, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != toldAt {
			forward.ServeHTTP(w, r)
			return
		}
		if err := told(http.MaxBytesReader(w, r.Body, toldBound)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})}
}

// inject puts text into the head of a page.
func inject(r *http.Response, text string) error {
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return err
	}
	const head = "<head>"
	if !bytes.Contains(body, []byte(head)) {
		return errors.New("the page has no head to put a script into")
	}
	body = bytes.Replace(body, []byte(head), []byte(head+text), 1)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// Browser is a Chromium, or a Firefox, that has the page open.
type Browser struct {
	// Ended has one value when the browser ended by itself.
	Ended <-chan error

	cmd     *exec.Cmd
	profile string
	server  *http.Server
	served  chan error
}

// Open has Chromium on a host open what page answers, at "/" with the query. What it prints goes to output, if there is
// one. A browser that was opened wants to be closed.
func Open(ctx context.Context, host *netlab.Host, page http.Handler, query string, output io.Writer) (*Browser, error) {
	return OpenWith(ctx, host, Options{Page: page, Query: query, Output: output})
}

// OpenWith is Open with further options; where the page is and where the browser starts follow from the host.
func OpenWith(ctx context.Context, host *netlab.Host, o Options) (_ *Browser, err error) {
	if o.Listener, err = host.Listen(ctx, "tcp", address); err != nil {
		return nil, err
	}
	o.Start = inside(host)
	return Launch(ctx, o)
}

// inside starts processes in a host.
func inside(host *netlab.Host) func(*exec.Cmd) error {
	return func(cmd *exec.Cmd) error { return host.Do(cmd.Start) }
}

// Options of Launch.
type Options struct {
	Listener net.Listener // where the page is; closed with the browser
	Secure   bool         // the listener speaks TLS
	Page     http.Handler
	Query    string
	Firefox  bool                      // instead of Chromium
	Flags    []string                  // beside a user's defaults
	Output   io.Writer                 // what the browser prints; nil is nowhere
	Start    func(cmd *exec.Cmd) error // nil starts it beside this process
	// Preferences of Firefox that are other than those of a lab, as Firefox writes them.
	Preferences map[string]string
}

// outputWait is how long a killed browser's children may keep its output open.
const outputWait = 2 * time.Second

// Launch is Open for any place that a process can be started in.
func Launch(ctx context.Context, o Options) (_ *Browser, err error) {
	b := &Browser{
		// A browser that begins to speak to it and thinks better of it is nothing to report.
		server: &http.Server{Handler: o.Page, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}, served: make(chan error, 1),
	}
	go func() { b.served <- b.server.Serve(o.Listener) }()
	defer func() {
		if err != nil {
			err = errors.Join(err, b.clear())
		}
	}()
	if b.profile, err = os.MkdirTemp("", "leeway-bench-browser-"); err != nil {
		return nil, err
	}
	scheme := "http"
	if o.Secure {
		scheme = "https"
	}
	at := scheme + "://" + o.Listener.Addr().String() + "/" + o.Query
	name, arg := command(), slices.Concat(flags, o.Flags, []string{"--user-data-dir=" + b.profile, at})
	if o.Firefox {
		if err = writePreferences(b.profile, o.Preferences); err != nil {
			return nil, err
		}
		name, arg = firefox(), slices.Concat(o.Flags, []string{"--headless", "--no-remote", "--profile", b.profile, at})
	}
	b.cmd = exec.CommandContext(ctx, name, arg...)
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	b.cmd.Cancel = func() error { return syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL) }
	b.cmd.WaitDelay = outputWait
	b.cmd.Stdout, b.cmd.Stderr = o.Output, o.Output
	b.cmd.Env = append(os.Environ(), "HOME="+b.profile)
	if o.Start == nil {
		o.Start = (*exec.Cmd).Start
	}
	if err = o.Start(b.cmd); err != nil {
		return nil, fmt.Errorf("start the browser: %w", err)
	}
	ended := make(chan error, 1)
	b.Ended = ended
	go func() { ended <- b.cmd.Wait(); close(ended) }()
	return b, nil
}

// PID is the browser's process; what it started are its children.
func (b *Browser) PID() int { return b.cmd.Process.Pid }

// Missing says what keeps this machine from running a browser.
func Missing(context.Context) error {
	if _, err := exec.LookPath(command()); err != nil {
		return fmt.Errorf("no Chromium: %w (install it, or name it in LEEWAY_CHROMIUM)", err)
	}
	return nil
}

// Close ends browser and proxy, and returns when both are gone.
func (b *Browser) Close() error {
	_ = b.cmd.Cancel()
	for range b.Ended {
	}
	return b.clear()
}

func (b *Browser) clear() error {
	_ = b.server.Close()
	<-b.served
	if b.profile == "" {
		return nil
	}
	return os.RemoveAll(b.profile)
}

// command is the Chromium that the machine has.
func command() string {
	if named := os.Getenv("LEEWAY_CHROMIUM"); named != "" {
		return named
	}
	return "chromium"
}
