package rtclink

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math/big"
	"net"
	"sync"
	"time"

	"github.com/pion/dtls/v3"
)

func sha256New() hash.Hash { return sha256.New() }

var errFingerprint = errors.New("rtclink: the other side's certificate is not the one that it signaled")

// earlyRecords bounds how many datagrams of application data are kept while the handshake ends.
const earlyRecords = 64

// shakeHands makes keys with the other side over conn, whose certificate must have the fingerprint.
func (h *Host) shakeHands(ctx context.Context, conn net.PacketConn, client bool, fingerprint [32]byte) (*dtls.Conn, error) {
	options := []dtls.Option{
		dtls.WithCertificates(h.identity.certificate),
		dtls.WithCipherSuites(dtls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
		dtls.WithExtendedMasterSecret(dtls.RequireExtendedMasterSecret),
		// Browsers ask for media keys with data channels too, and pion refuses a peer that it shares no profile with.
		dtls.WithSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_80),
		dtls.WithLoggerFactory(h.loggers),
		dtls.WithInsecureSkipVerify(true), // self-signed; the fingerprint says whose it is
		dtls.WithVerifyPeerCertificate(func(raw [][]byte, _ [][]*x509.Certificate) error {
			if len(raw) == 0 || sha256.Sum256(raw[0]) != fingerprint {
				return errFingerprint
			}
			return nil
		}),
	}
	var peer *dtls.Conn
	var err error
	if client {
		all := make([]dtls.ClientOption, len(options))
		for i, o := range options {
			all[i] = o
		}
		peer, err = dtls.ClientWithOptions(conn, path, all...)
	} else {
		// Hello-verify guards a server against forged source addresses that would make it amplify; here ICE's consent
		// (a check signed with this link's password, answered from that address) has shown the address before the first
		// DTLS packet is read, so the cookie's round trip would prove nothing more.
		all := []dtls.ServerOption{dtls.WithClientAuth(dtls.RequireAnyClientCert), dtls.WithInsecureSkipVerifyHello(true)}
		for _, o := range options {
			all = append(all, o)
		}
		peer, err = dtls.ServerWithOptions(conn, path, all...)
	}
	if err != nil {
		return nil, fmt.Errorf("rtclink: DTLS: %w", err)
	}
	if err := peer.HandshakeContext(ctx); err != nil {
		_ = peer.Close()
		return nil, fmt.Errorf("rtclink: DTLS: %w", err)
	}
	return peer, nil
}

// handshake makes keys with the other side, and the records that they are for.
func (h *Host) handshake(ctx context.Context, conn datagrams, client bool, fingerprint [32]byte, idle func()) (*records, error) {
	f := &flights{conn: conn, handed: make(chan struct{})}
	peer, err := h.shakeHands(ctx, f, client, fingerprint)
	if err != nil {
		return nil, err
	}
	state, _ := peer.ConnectionState()
	k, err := keysOf(state)
	if err != nil {
		_ = peer.Close()
		return nil, fmt.Errorf("rtclink: %w", err)
	}
	f.finish(client)
	ctx, stop := context.WithCancel(ctx) // a link may end before the handshake lets go
	return newRecords(conn, k, func() ([][]byte, error) { return f.take(ctx, peer) }, stop, idle), nil
}

// path is where a handshake sends to: the ICE agent knows where that is.
var path net.Addr = &net.UDPAddr{}

// flights is what a handshake runs over: conn, less the application data, which it keeps. When the handshake is over and
// cannot be needed again, it lets go of conn: a client at once; a server when the first application data shows that
// its last flight has arrived, for until then it may have to send that again.
type flights struct {
	conn   datagrams
	handed chan struct{} // closed when the handshake reads no more

	mu    sync.Mutex
	done  bool     // guarded by mu: both sides have the keys, as far as this one knows
	kick  bool     // guarded by mu: reading was interrupted to let go
	over  bool     // guarded by mu: handed is closed
	early [][]byte // guarded by mu
}

var _ net.PacketConn = (*flights)(nil)

// finish says that the handshake has succeeded.
func (f *flights) finish(client bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = true
	if !f.over && (client || len(f.early) > 0) {
		f.kick = true
		_ = f.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// take waits until conn is free, ends the handshake's machinery and returns the application data that came meanwhile.
func (f *flights) take(ctx context.Context, peer *dtls.Conn) ([][]byte, error) {
	select {
	case <-f.handed:
	case <-ctx.Done():
		_ = f.conn.SetReadDeadline(time.Unix(1, 0))
	}
	f.mu.Lock()
	f.over = true
	early := f.early
	f.early = nil
	f.mu.Unlock()
	_ = peer.Close() // f is mute now
	return early, ctx.Err()
}

// ReadFrom implements net.PacketConn.
func (f *flights) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, err := f.conn.Read(p)
		f.mu.Lock()
		application := err == nil && n > 0 && p[0] == contentApplication
		if application && len(f.early) < earlyRecords {
			f.early = append(f.early, append([]byte(nil), p[:n]...))
		}
		if f.done && !f.over && (application || f.kick && isTimeout(err)) {
			f.over = true
			_ = f.conn.SetReadDeadline(time.Time{})
			close(f.handed)
		}
		over := f.over
		f.mu.Unlock()
		switch {
		case over:
			return 0, nil, net.ErrClosed
		case application:
			continue
		case err != nil:
			return 0, nil, err
		}
		return n, path, nil
	}
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// WriteTo implements net.PacketConn.
func (f *flights) WriteTo(p []byte, _ net.Addr) (int, error) {
	f.mu.Lock()
	over := f.over
	f.mu.Unlock()
	if over || usesOurs(p) {
		return len(p), nil // the handshake's farewell (the link goes on), or a number that is not its own
	}
	return f.conn.Write(p)
}

// usesOurs says whether a datagram has a record of epoch 1 with a number that is ours to give out. A server sends its last
// flight again, under new numbers, for every handshake message that comes until the first application data do, forged
// ones too: the keys are the same, and two records of one number would have one nonce, which gives AES-GCM away.
func usesOurs(datagram []byte) bool {
	for len(datagram) >= recordHeader {
		if binary.BigEndian.Uint64(datagram[3:]) >= 1<<48|firstSequence {
			return true
		}
		datagram = datagram[min(len(datagram), recordHeader+int(binary.BigEndian.Uint16(datagram[recordHeader-2:]))):]
	}
	return false
}

// SetReadDeadline implements net.PacketConn.
func (f *flights) SetReadDeadline(t time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || f.kick {
		return nil
	}
	return f.conn.SetReadDeadline(t)
}

// Close implements net.PacketConn; conn is not the handshake's to close.
func (f *flights) Close() error { return nil }

// LocalAddr implements net.PacketConn.
func (f *flights) LocalAddr() net.Addr { return f.conn.LocalAddr() }

// SetDeadline implements net.PacketConn.
func (f *flights) SetDeadline(t time.Time) error { return f.SetReadDeadline(t) }

// SetWriteDeadline implements net.PacketConn.
func (f *flights) SetWriteDeadline(time.Time) error { return nil }

// identity is a host's DTLS certificate.
type identity struct {
	certificate tls.Certificate
	fingerprint [32]byte
}

// identityLife is how long a host's certificate says that it is valid. It is not checked: the fingerprint is what counts.
const identityLife = 10 * 365 * 24 * time.Hour

// newIdentity makes one for all links of a host: a key a link costs time at each offer and hides nothing, for the
// addresses are the same.
func newIdentity(now time.Time) (*identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("rtclink: DTLS key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64))
	if err != nil {
		return nil, fmt.Errorf("rtclink: DTLS certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "WebRTC"},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(identityLife),
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("rtclink: DTLS certificate: %w", err)
	}
	return &identity{tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, sha256.Sum256(raw)}, nil
}
