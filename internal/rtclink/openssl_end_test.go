package rtclink

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/webrtcend"
)

// OpenSSL's DTLS is the other end here: an implementation that shares nothing with pion's or ours.

// opensslPath is a path to OpenSSL over loopback. Packets are numbered in each direction; fate says what becomes of one, in the order in
// which they are delivered.
type opensslPath struct {
	*net.UDPConn
	peer atomic.Pointer[net.UDPAddr]

	came  chan struct{} // a packet of OpenSSL's arrived
	queue [][]byte      // of the reader
	heldR []byte        // of the reader
	readN int

	mu     sync.Mutex
	fate   func(out bool, n int, p []byte) fate // guarded by mu; nil: all pass
	writeN int                                  // guarded by mu
	heldW  []byte                               // guarded by mu
}

// fate of a packet.
type fate int

const (
	passes fate = iota
	lost
	doubled
	overtaken // by the next one
)

func (o *opensslPath) decide(out bool, n int, p []byte) fate {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fate == nil {
		return passes
	}
	return o.fate(out, n, p)
}

// apply is what a packet makes of those that are delivered.
func apply(f fate, p []byte, held *[]byte) (now [][]byte) {
	switch f {
	case lost:
	case doubled:
		now = [][]byte{p, p}
	case overtaken:
		*held = p
		return nil
	default:
		now = [][]byte{p}
	}
	if *held != nil {
		now, *held = append(now, *held), nil
	}
	return now
}

func (o *opensslPath) Read(b []byte) (int, error) {
	for len(o.queue) == 0 {
		n, from, err := o.ReadFromUDP(b)
		if err != nil {
			return 0, err
		}
		o.peer.CompareAndSwap(nil, from)
		p := bytes.Clone(b[:n])
		o.queue = apply(o.decide(false, o.readN, p), p, &o.heldR)
		o.readN++
		select {
		case o.came <- struct{}{}:
		default:
		}
	}
	p := o.queue[0]
	o.queue = o.queue[1:]
	return copy(b, p), nil
}

func (o *opensslPath) Write(b []byte) (int, error) {
	o.mu.Lock()
	n := o.writeN
	o.writeN++
	o.mu.Unlock()
	f := o.decide(true, n, b)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range apply(f, bytes.Clone(b), &o.heldW) {
		if _, err := o.WriteToUDP(p, o.peer.Load()); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

func (o *opensslPath) RemoteAddr() net.Addr { return path }

// become changes the fate of packets from now on.
func (o *opensslPath) become(f func(out bool, n int, p []byte) fate) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fate = f
}

// openssl is a running s_client or s_server.
type openssl struct {
	t     *testing.T
	in    io.WriteCloser
	lines chan string
	ended chan error
	path  *opensslPath
	ours  *records
}

// haveOpenSSL ends the test where there is none, which in continuous integration is a failure.
func haveOpenSSL(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("openssl")
	switch {
	case err == nil:
		return program
	case os.Getenv("CI") == "true":
		t.Fatal("openssl is missing (apt-get install openssl)")
	default:
		t.Skip("openssl is missing (apt-get install openssl): the second opinion on records is left out")
	}
	return ""
}

// startOpenSSL makes records whose other end is OpenSSL. client says that OpenSSL is the client.
func startOpenSSL(t *testing.T, client bool, fate func(out bool, n int, p []byte) fate) *openssl {
	t.Helper()
	program := haveOpenSSL(t)
	leakCheck(t)
	theirs, err := webrtcend.NewIdentity(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	file := writeIdentity(t, theirs)
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	o := &openssl{t: t, lines: make(chan string, 4096), ended: make(chan error, 1), path: &opensslPath{UDPConn: conn, came: make(chan struct{}, 4096), fate: fate}}
	args := []string{"-dtls1_2", "-cert", file, "-key", file, "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256", "-mtu", "1200", "-timeout", "-quiet",
		"-use_srtp", "SRTP_AEAD_AES_128_GCM"} // as browsers have it
	if client {
		args = append(append([]string{"s_client", "-connect", conn.LocalAddr().String()}, args...), "-no_ign_eof") // behind -quiet, which ignores it
	} else {
		spare := udp(t)
		at := spare.LocalAddr().(*net.UDPAddr)
		_ = spare.Close()
		o.path.peer.Store(at)
		args = append([]string{"s_server", "-accept", at.String(), "-Verify", "1", "-naccept", "1"}, args...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	o.run(ctx, cancel, exec.CommandContext(ctx, program, args...))
	host := testHost(t)
	if o.ours, err = host.handshake(ctx, o.path, !client, theirs.Fingerprint, func() {}); err != nil {
		t.Fatalf("handshake: %v", err)
	}
	return o
}

func (o *openssl) run(ctx context.Context, cancel func(), c *exec.Cmd) {
	stdout, err := c.StdoutPipe()
	if err == nil {
		o.in, err = c.StdinPipe()
	}
	var said bytes.Buffer
	c.Stderr = &said
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		o.t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			o.lines <- s.Text()
		}
	}()
	go func() {
		<-read
		o.ended <- c.Wait()
	}()
	o.t.Cleanup(func() {
		if o.ours != nil {
			_ = o.ours.Close()
		}
		_ = o.in.Close()
		cancel()
		if err := wait(o.t, o.ended, "openssl's end"); err != nil && o.t.Failed() {
			o.t.Logf("openssl: %v, %v\n%s", err, ctx.Err(), said.Bytes())
		}
	})
}

func writeIdentity(t *testing.T, id *webrtcend.Identity) string {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(id.Certificate.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: id.Certificate.Certificate[0]})...)
	file := filepath.Join(t.TempDir(), "identity.pem")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// hears reads lines that OpenSSL prints until it has printed the last.
func (o *openssl) hears(last string) (all []string) {
	o.t.Helper()
	for {
		line := wait(o.t, o.lines, "openssl to print "+last)
		if line == last {
			return all
		}
		all = append(all, line)
	}
}

// tells has OpenSSL send a line in a record of its own.
func (o *openssl) tells(line string) {
	o.t.Helper()
	for len(o.path.came) > 0 {
		<-o.path.came
	}
	if _, err := fmt.Fprintln(o.in, line); err != nil {
		o.t.Fatal(err)
	}
}

// reader has the records read until they end, and hands on what they carry.
func (o *openssl) reader() (got chan string, ended chan error) {
	got, ended = make(chan string, 4096), make(chan error, 1)
	go func() {
		buf := make([]byte, maxDatagram)
		for {
			n, err := o.ours.Read(buf)
			if err != nil {
				ended <- err
				return
			}
			got <- strings.TrimSuffix(string(buf[:n]), "\n")
		}
	}()
	return got, ended
}

func bothRoles(t *testing.T, f func(t *testing.T, client bool)) {
	for _, client := range []bool{true, false} {
		name := "OpenSSL serves"
		if client {
			name = "OpenSSL is the client"
		}
		t.Run(name, func(t *testing.T) { f(t, client) })
	}
}
