package webrtcend_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/webrtcend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTheFingerprintSaysWhoseTheCertificateIs has two ends make keys: with the fingerprints that they signaled, and with another one on
// either side.
func TestTheFingerprintSaysWhoseTheCertificateIs(t *testing.T) {
	ids := make([]*webrtcend.Identity, 3)
	for i := range ids {
		var err error
		if ids[i], err = webrtcend.NewIdentity(time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name              string
		ofServer, ofThose *webrtcend.Identity // what the client, and the server, takes the other side for
		client, server    error
	}{
		{"both are", ids[0], ids[1], nil, nil},
		{"the server is another", ids[2], ids[1], webrtcend.ErrFingerprint, nil},
		{"the client is another", ids[0], ids[2], nil, webrtcend.ErrFingerprint},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			s, k := listen(t), listen(t)
			served, shaken := make(chan error, 1), make(chan struct{})
			go func() {
				conn, err := ids[0].Handshake(ctx, s, k.LocalAddr(), false, c.ofThose.Fingerprint)
				if err == nil {
					<-shaken // else the end may come before what ends the client's handshake
					err = conn.Close()
				}
				served <- err
			}()
			conn, err := ids[1].Handshake(ctx, k, s.LocalAddr(), true, c.ofServer.Fingerprint)
			close(shaken)
			if err == nil && c.server == nil {
				err = conn.Close()
			}
			if c.client != nil && !errors.Is(err, c.client) || c.client == nil && c.server == nil && err != nil {
				t.Errorf("the client: %v", err)
			}
			if err := <-served; c.server != nil && !errors.Is(err, c.server) || c.server == nil && c.client == nil && err != nil {
				t.Errorf("the server: %v", err)
			}
			if conn != nil {
				_ = conn.Close()
			}
		})
	}
}

func listen(t *testing.T) net.PacketConn {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestChunksArePadded(t *testing.T) {
	if got := webrtcend.LeastPayload(1191); got != 1156 {
		t.Errorf("a packet of 1,191 bytes carries %d", got)
	}
}
