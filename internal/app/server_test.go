package app

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wsconn"
)

// TestConnectionsThatAskForNothingMakeRoom: at the port of a tracker and at that of a probe server, which looks at the state of connections
// itself.
func TestConnectionsThatAskForNothingMakeRoom(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	cert, key := writePair(t, t.TempDir(), "probe.test")
	certificate, err := openPair(cert, key, log)
	if err != nil {
		t.Fatal(err)
	}
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for name, serve := range map[string]func(*servers, net.Listener){
		"tracker": func(s *servers, l net.Listener) { s.serveTLS("tracker", l, h, nil, certificate) },
		"probe": func(s *servers, l net.Listener) {
			s.serveHTTP2("probe", l, h, certificate, func(netip.Addr) (func(), bool) { return func() {}, true })
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			group := newServers(log)
			defer group.stop()
			serve(group, wsconn.NewAdmission(l, wsconn.AdmissionConfig{MaxOpen: 1}))
			answered := 0
			testkit.Eventually(t, "three are answered, and stay", func() bool { // when one is known to be idle is the machine's business
				c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
				if err != nil {
					return false
				}
				t.Cleanup(func() { _ = c.Close() })
				_ = c.SetDeadline(time.Now().Add(testkit.Patience))
				_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
				if _, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 200"))); err == nil {
					answered++
				}
				return answered == 3
			})
		})
	}
}
