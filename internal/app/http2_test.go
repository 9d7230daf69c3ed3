package app

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/probe"
	"github.com/leeway-video/leeway/internal/testkit"
)

// TestProbeSpeaksHTTP2 with clients that offer nothing else: all requests of the responsiveness draft on one connection. Others keep HTTP/1.1.
func TestProbeSpeaksHTTP2(t *testing.T) {
	defer goleak.VerifyNone(t)
	listen, admin := freeAddress(t), freeAddress(t)
	cert, key := writePair(t, t.TempDir(), "probe.test")
	stop := startService(t, admin, "probe", "serve", "--listen", listen, "--udp", "127.0.0.1:0", "--admin", admin, "--tls-cert", cert, "--tls-key", key)
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	alone := &http.Transport{Protocols: &http.Protocols{}, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	alone.Protocols.SetHTTP2(true)
	defer alone.CloseIdleConnections()
	client := http.Client{Transport: alone}
	for _, ask := range []struct {
		method, path string
		body         int
		length       int
	}{
		{"GET", "/.well-known/nq", 0, -1}, {"GET", "/probe/v1/small", 0, 1}, {"GET", "/probe/v1/download?bytes=3000000", 0, 3_000_000},
		{"POST", "/probe/v1/upload", 3_000_000, -1}, {"GET", "/check", 0, -1},
	} {
		r, err := http.NewRequestWithContext(t.Context(), ask.method, "https://"+listen+ask.path, bytes.NewReader(make([]byte, ask.body)))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatalf("%s: %v", ask.path, err)
		}
		got, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		switch {
		case err != nil || response.StatusCode != http.StatusOK || response.ProtoMajor != 2:
			t.Errorf("%s: %s over %s, %v", ask.path, response.Status, response.Proto, err)
		case ask.length >= 0 && len(got) != ask.length:
			t.Errorf("%s: %d bytes", ask.path, len(got))
		case ask.body > 0 && !strings.Contains(string(got), fmt.Sprintf(`"bytes":%d`, ask.body)):
			t.Errorf("%s: %s", ask.path, got)
		}
	}
	both := &http.Transport{ForceAttemptHTTP2: true, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	response, err := (&http.Client{Transport: both}).Get("https://" + listen + "/probe/v1/small")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.ProtoMajor != 1 {
		t.Errorf("a client that speaks both is answered by %s", response.Proto)
	}

	var held []net.Conn
	defer func() {
		for _, c := range held {
			_ = c.Close()
		}
	}()
	for refused := false; !refused; {
		c, err := tls.Dial("tcp", listen, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if refused = err != nil; !refused {
			held = append(held, c)
		}
		if len(held) > 1000 {
			t.Fatal("an address has as many connections as it likes")
		}
	}
	testkit.Eventually(t, "a connection is refused and counted", func() bool {
		_, metrics := fetch(t, "GET", "http://"+admin+"/metrics")
		return strings.Contains(metrics, `leeway_probe_refused_total{reason="address"} 1`+"\n")
	})
	_ = held[0].Close()
	testkit.Eventually(t, "the end of one makes room", func() bool {
		c, err := tls.Dial("tcp", listen, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err == nil {
			held = append(held, c)
		}
		return err == nil
	})
}

// closable is a connection that says when it is closed.
type closable struct {
	net.Conn
	closed chan struct{}
}

func (c closable) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 40000}
}

func (c closable) Close() error {
	close(c.closed)
	return nil
}

// TestHTTP2ConnectionsEnd: a connection that goes on is closed once its time is over, one without a request much sooner, and neither
// before.
func TestHTTP2ConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := 0
		open := &http2Connections{enter: func(netip.Addr) (func(), bool) { return func() { left++ }, true }, all: map[net.Conn]*http2Connection{}}
		quiet := closable{closed: make(chan struct{})}
		if !open.open(quiet) {
			t.Fatal("refused")
		}
		open.changed(tls.Server(quiet, &tls.Config{}), http.StateIdle)
		open.changed(tls.Server(quiet, &tls.Config{}), http.StateActive)
		<-time.After(2 * probe.HTTP2Idle)
		select {
		case <-quiet.closed:
			t.Error("one with a request was closed as idle")
		default:
		}
		open.changed(tls.Server(quiet, &tls.Config{}), http.StateIdle)
		idle := time.Now()
		<-quiet.closed
		if kept := time.Since(idle); kept != probe.HTTP2Idle {
			t.Errorf("one without a request was closed after %s", kept)
		}
		open.changed(tls.Server(quiet, &tls.Config{}), http.StateClosed)
		if left != 1 {
			t.Errorf("its place was given back %d times", left)
		}

		left = 0
		conn, began := closable{closed: make(chan struct{})}, time.Now()
		if !open.open(conn) {
			t.Fatal("refused")
		}
		secure := tls.Server(conn, &tls.Config{})
		open.changed(secure, http.StateActive)
		<-conn.closed
		if lived := time.Since(began); lived != probe.HTTP2Life {
			t.Errorf("it lived %s", lived)
		}
		if left != 0 {
			t.Error("its place was given back before it was closed")
		}
		open.changed(secure, http.StateClosed)
		open.changed(secure, http.StateClosed)
		if left != 1 || len(open.all) != 0 {
			t.Errorf("its place was given back %d times, %d are open", left, len(open.all))
		}
	})
}
