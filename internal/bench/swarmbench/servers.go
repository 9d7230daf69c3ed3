package swarmbench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/leeway-video/leeway/internal/bench"
	"github.com/leeway-video/leeway/internal/netlab"
)

// Ports of the servers, the ones that the project gives out.
const (
	publicPort = 8080
	adminPort  = 9464
	seedPort   = 4600
	stunPort   = 3478
)

// startWait is how long the servers may take to come up; the film may have to be prepared first.
const startWait = 5 * time.Minute

// stopWait is how long the servers may take to end after SIGTERM.
const stopWait = 20 * time.Second

// servers is `leeway up` in a place of the lab: tracker, seed and origin in one process.
type servers struct {
	host    *netlab.Host
	addr    netip.Addr
	cmd     *netlab.Cmd
	dir     string
	ended   chan error
	client  *http.Client
	log     *tail
	socket  *net.UDPConn // of the STUN server
	stunned chan error
}

// stun runs a STUN server beside the others: two browsers that hide their addresses cannot find each other without one.
func (s *servers) stun(ctx context.Context) error {
	conn, err := s.host.ListenPacket(ctx, "udp4", s.address(stunPort))
	if err != nil {
		return err
	}
	s.socket = conn.(*net.UDPConn)
	go func() { s.stunned <- netlab.ServeSTUN(s.socket) }()
	return nil
}

func serve(ctx context.Context, host *netlab.Host, settings ...string) (*servers, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "leeway-bench-swarm-")
	if err != nil {
		return nil, err
	}
	s := &servers{host: host, addr: host.Addr(), dir: dir, ended: make(chan error, 1), stunned: make(chan error, 1), log: &tail{}}
	s.client = &http.Client{Transport: &http.Transport{DialContext: host.DialContext, DisableKeepAlives: true}, Timeout: 10 * time.Second}
	at := func(port uint16) string { return netip.AddrPortFrom(host.Addr(), port).String() }
	if err := s.stun(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	config := filepath.Join(dir, "leeway.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "tracker:\n  ice_servers:\n    - urls: [\"stun:%s\"]\n", at(stunPort)), 0o600); err != nil {
		return nil, errors.Join(err, s.socket.Close(), os.RemoveAll(dir))
	}
	// On every address: browsers come by loopback, through a proxy of their own, and the site's hosts are what is listened on.
	s.cmd = host.Command(ctx, self, "--config", config, "up", "--open", "--data-dir", filepath.Join(dir, "data"),
		"--listen", fmt.Sprintf("0.0.0.0:%d", publicPort), "--admin", at(adminPort), "--seed-listen", at(seedPort))
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.Env = append(os.Environ(), settings...)
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, s.socket.Close(), os.RemoveAll(dir))
	}
	go func() { s.ended <- s.cmd.Wait() }()
	if err := s.ready(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// ready waits until the servers take work.
func (s *servers) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	for {
		select {
		case err := <-s.ended:
			s.ended <- err
			return fmt.Errorf("the servers ended before they were ready: %v\n%s", err, s.log)
		default:
		}
		response, err := s.client.Get("http://" + s.address(adminPort) + "/readyz")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		if !bench.Pause(ctx, 200*time.Millisecond) {
			return errors.New("the servers did not come up")
		}
	}
}

func (s *servers) address(port uint16) string {
	return netip.AddrPortFrom(s.addr, port).String()
}

func (s *servers) manifest() string {
	return "http://" + s.address(publicPort) + "/media/bbb/master.m3u8"
}

// fault has the origin answer segments with an error, or not any more: none, 404, 500, slow.
func (s *servers) fault(kind string) error {
	response, err := s.client.Post("http://"+s.address(adminPort)+"/origin/fault?kind="+kind, "", nil)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("origin fault %s: %s", kind, response.Status)
	}
	return nil
}

// served is what the servers sent, by their own count.
func (s *servers) served() (Served, error) {
	sums, err := s.metrics()
	if err != nil {
		return Served{}, err
	}
	return Served{
		OriginToViewers: sums(`leeway_origin_sent_bytes_total`, `client="viewer"`),
		OriginToSeeds:   sums(`leeway_origin_sent_bytes_total`, `client="seed"`),
		Seed:            sums(`leeway_seed_sent_bytes_total`),
		Signaling:       sums(`leeway_tracker_message_bytes_total`),
	}, nil
}

// metrics reads the admin port's page; the result adds up the series of a name that have a label.
func (s *servers) metrics() (func(name string, labels ...string) int64, error) {
	response, err := s.client.Get("http://" + s.address(adminPort) + "/metrics")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	series := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseFloat(value, 64); ok && err == nil {
			series[name] = n
		}
	}
	return func(name string, labels ...string) int64 {
		sum := 0.0
	next:
		for key, n := range series {
			if key != name && !strings.HasPrefix(key, name+"{") {
				continue
			}
			for _, l := range labels {
				if !strings.Contains(key, l) {
					continue next
				}
			}
			sum += n
		}
		return int64(sum)
	}, lines.Err()
}

// stop ends the servers and removes what they wrote.
func (s *servers) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	var err error
	select {
	case err = <-s.ended:
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			err = fmt.Errorf("the servers ended with %w\n%s", err, s.log)
		}
	case <-time.After(stopWait):
		err = fmt.Errorf("the servers did not end within %v of SIGTERM", stopWait)
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
	return errors.Join(err, s.socket.Close(), <-s.stunned, os.RemoveAll(s.dir))
}
