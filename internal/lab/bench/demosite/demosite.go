// Package demosite runs `leeway up`, which is tracker, seed and origin with the demo's film in one process, on a host of a
// lab, for the benches whose viewers join it.
package demosite

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/sleep"
)

// Name is what the tracker calls the site.
const Name = "demo"

// What a site shows: the sample film as HLS of MPEG-TS, or a live stream. The demo's page plays the film as CMAF, unless its query has
// what Site.Page says.
const (
	Film   = "bbb/ts"
	Stream = "live"
)

// playlist is the path of what the players open.
func playlist(film string) string { return "/media/" + film + "/master.m3u8" }

// Ports, the ones that the project gives out.
const (
	publicPort = 8080
	adminPort  = 9464
	seedPort   = 4600
	stunPort   = 3478
)

const (
	startWait = 5 * time.Minute // a busy machine takes its time
	stopWait  = 20 * time.Second
	lookEvery = 200 * time.Millisecond
)

// Site is the process and what is beside it.
type Site struct {
	Addr   netip.Addr
	Client *http.Client // that reaches it from its own host

	host    *netlab.Host
	cmd     *netlab.Cmd
	dir     string
	film    string // Film or Stream
	token   string // of its admin port
	ended   chan error
	log     bench.Tail
	socket  *net.UDPConn // of the STUN server, if there is one
	stunned chan error
}

// Options of a Site.
type Options struct {
	STUN     bool          // a STUN server runs beside: browsers that hide their addresses cannot find each other without one
	Config   string        // the configuration file, where STUN does not write one
	IPv6     bool          // it listens on IPv6 addresses too
	Film     string        // what it shows: Film, or Stream where the settings say so; empty is Film
	Segment  time.Duration // of the film's segments; 0 is the usual length
	Filmless bool          // it shows no film, or makes it while it is shown
	Settings []string      // further variables of the environment
	Log      io.Writer     // gets what is said of a film that is prepared; nil: it is dropped
}

// Open starts the site and waits until it takes work.
func Open(ctx context.Context, host *netlab.Host, o Options) (*Site, error) {
	leeway, err := bench.Leeway()
	if err != nil {
		return nil, err
	}
	if !o.Filmless {
		if err := prepare(ctx, leeway, o.Segment, o.Log); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("", "leeway-bench-")
	if err != nil {
		return nil, err
	}
	s := &Site{Addr: host.Addr(), host: host, dir: dir, film: cmp.Or(o.Film, Film), token: rand.Text() + rand.Text(), ended: make(chan error, 1)}
	s.Client = &http.Client{Transport: &http.Transport{DialContext: host.DialContext, DisableKeepAlives: true}, Timeout: 10 * time.Second}
	args, err := s.arguments(ctx, o)
	if err != nil {
		return nil, errors.Join(err, s.clear())
	}
	s.cmd = host.Command(ctx, leeway, args...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.Env = append(append(os.Environ(), "LEEWAY_ADMIN_TOKEN="+s.token), o.Settings...)
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, s.clear())
	}
	go func() { s.ended <- s.cmd.Wait() }()
	if err := s.ready(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// arguments are those of the process, whose configuration file is then there.
func (s *Site) arguments(ctx context.Context, o Options) (args []string, err error) {
	if o.STUN {
		if o.Config, err = s.stun(ctx); err != nil {
			return nil, err
		}
	}
	if o.Config != "" {
		file := filepath.Join(s.dir, "leeway.yaml")
		if err := os.WriteFile(file, []byte(o.Config), 0o600); err != nil {
			return nil, err
		}
		args = []string{"--config", file}
	}
	// On every address: browsers come by loopback, through a proxy of their own, and the site's hosts are what is listened on.
	listen, seed := "0.0.0.0", s.at(seedPort)
	if o.IPv6 {
		listen, seed = "[::]", fmt.Sprintf("[::]:%d", seedPort)
	}
	return append(args, "up", "--open", "--data-dir", filepath.Join(s.dir, "data"),
		"--listen", fmt.Sprintf("%s:%d", listen, publicPort), "--admin", s.Admin(), "--seed-listen", seed,
		"--seed-allow", "0.0.0.0/0", "--seed-allow", "::/0"), nil // the lab's addresses are its own
}

// stun runs a STUN server, and returns the configuration that names it.
func (s *Site) stun(ctx context.Context) (config string, err error) {
	conn, err := s.host.ListenPacket(ctx, "udp4", s.at(stunPort))
	if err != nil {
		return "", err
	}
	s.socket, s.stunned = conn.(*net.UDPConn), make(chan error, 1)
	go func() { s.stunned <- netlab.ServeSTUN(s.socket) }()
	return fmt.Sprintf("tracker:\n  ice_servers:\n    - urls: [\"stun:%s\"]\n", s.at(stunPort)), nil
}

func (s *Site) at(port uint16) string { return netip.AddrPortFrom(s.Addr, port).String() }

// Public is the address and port of pages, film and tracker.
func (s *Site) Public() string { return s.at(publicPort) }

// PublicAt is that of another address of the host.
func (s *Site) PublicAt(a netip.Addr) string { return netip.AddrPortFrom(a, publicPort).String() }

// STUN is the address and port of the STUN server, where there is one.
func (s *Site) STUN() string { return s.at(stunPort) }

// Admin is the address and port for the operator of the site.
func (s *Site) Admin() string { return s.at(adminPort) }

// Manifest is the film's URL.
func (s *Site) Manifest() string { return s.ManifestAt(s.Addr) }

// ManifestAt is the film's URL at another address of the host.
func (s *Site) ManifestAt(a netip.Addr) string {
	return "http://" + s.PublicAt(a) + playlist(s.film)
}

// Page is the part of the page's query that has it play the manifest.
func (s *Site) Page() string { return "src=" + playlist(s.film) }

// Tracker is the tracker's URL.
func (s *Site) Tracker() string { return "ws://" + s.Public() + "/" }

// ready waits until the site takes work.
func (s *Site) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	for {
		select {
		case err := <-s.ended:
			s.ended <- err
			return fmt.Errorf("the servers ended before they were ready: %v\n%s", err, &s.log)
		default:
		}
		response, err := s.Client.Get("http://" + s.Admin() + "/readyz")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		if !sleep.For(ctx, lookEvery) {
			return errors.New("the servers did not come up")
		}
	}
}

// Close ends the site and removes what it wrote. It is an error if it ends with one, or late.
func (s *Site) Close() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	var err error
	select {
	case err = <-s.ended:
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			err = fmt.Errorf("the servers ended with %w\n%s", err, &s.log)
		}
	case <-time.After(stopWait):
		err = fmt.Errorf("the servers did not end within %v of SIGTERM", stopWait)
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
	return errors.Join(err, s.clear())
}

// clear ends what is beside the process.
func (s *Site) clear() error {
	var err error
	if s.socket != nil {
		err = errors.Join(s.socket.Close(), <-s.stunned)
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}
