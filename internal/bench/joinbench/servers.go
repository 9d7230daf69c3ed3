package joinbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/leeway-video/leeway/internal/bench"
	"github.com/leeway-video/leeway/internal/netlab"
)

const (
	publicPort = 8080
	adminPort  = 9464
	seedPort   = 4600
	stunPort   = 3478
	siteName   = "demo"

	startWait = 5 * time.Minute // the film may have to be prepared first
	stopWait  = 20 * time.Second
)

// servers is `leeway up` on a host of the lab: tracker, seed and origin in one process.
type servers struct {
	host  *netlab.Host
	cmd   *netlab.Cmd
	dir   string
	ended chan error
	log   bytes.Buffer // of the process; read when it has ended

	socket  *net.UDPConn // of the STUN server, if there is one
	stunned chan error
}

// stun runs a STUN server beside the others, and writes the configuration that names it.
func (s *servers) stun(ctx context.Context) (config string, err error) {
	conn, err := s.host.ListenPacket(ctx, "udp4", s.at(stunPort))
	if err != nil {
		return "", err
	}
	s.socket, s.stunned = conn.(*net.UDPConn), make(chan error, 1)
	go func() { s.stunned <- netlab.ServeSTUN(s.socket) }()
	config = filepath.Join(s.dir, "leeway.yaml")
	return config, os.WriteFile(config, fmt.Appendf(nil, "tracker:\n  ice_servers:\n    - urls: [\"stun:%s\"]\n", s.at(stunPort)), 0o600)
}

func serve(ctx context.Context, host *netlab.Host, stun bool) (*servers, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "leeway-bench-join-")
	if err != nil {
		return nil, err
	}
	s := &servers{host: host, dir: dir, ended: make(chan error, 1)}
	var args []string
	if stun {
		config, err := s.stun(ctx)
		if err != nil {
			return nil, errors.Join(err, s.clear())
		}
		args = []string{"--config", config}
	}
	// On every address: the browser comes by loopback, through a proxy of its own, and the site's hosts are what is listened on.
	args = append(args, "up", "--open", "--data-dir", filepath.Join(dir, "data"),
		"--listen", fmt.Sprintf("0.0.0.0:%d", publicPort), "--admin", s.at(adminPort), "--seed-listen", s.at(seedPort))
	s.cmd = host.Command(ctx, self, args...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, s.clear())
	}
	go func() { s.ended <- s.cmd.Wait() }()
	if err := s.ready(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *servers) at(port uint16) string { return netip.AddrPortFrom(s.host.Addr(), port).String() }

func (s *servers) manifest() string { return "http://" + s.at(publicPort) + "/media/bbb/master.m3u8" }

func (s *servers) tracker() string { return "ws://" + s.at(publicPort) + "/" }

// ready waits until the servers take work.
func (s *servers) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	client := http.Client{Transport: &http.Transport{DialContext: s.host.DialContext, DisableKeepAlives: true}, Timeout: 10 * time.Second}
	for {
		response, err := client.Get("http://" + s.at(adminPort) + "/readyz")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			return fmt.Errorf("the servers ended before they were ready: %v\n%s", err, s.log.String())
		default:
		}
		if !bench.Pause(ctx, lookEvery) {
			return errors.New("the servers did not come up")
		}
	}
}

func (s *servers) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(stopWait, func() { _ = s.cmd.Process.Kill() })
	<-s.ended
	late.Stop()
	return s.clear()
}

// clear ends what is beside the process.
func (s *servers) clear() error {
	var err error
	if s.socket != nil {
		err = errors.Join(s.socket.Close(), <-s.stunned)
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}
