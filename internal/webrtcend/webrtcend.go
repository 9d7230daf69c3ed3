// Package webrtcend has what every WebRTC end of the product has, whatever it carries: an identity, the handshake that holds the other
// side to the fingerprint that it signaled, sockets, and how much of a message one packet carries.
//
// Links of viewers and seeds (rtclink) and lines of the network check (qualitylink) stand on it. Neither stands on the other.
package webrtcend

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"github.com/pion/dtls/v3"
)

// ErrFingerprint says that the other side is not the one that signaled.
var ErrFingerprint = errors.New("the other side's certificate is not the one that it signaled")

// Identity is a host's DTLS certificate and its SHA-256.
type Identity struct {
	Certificate tls.Certificate
	Fingerprint [32]byte
}

// identityLife is how long a host's certificate says that it is valid. It is not checked: the fingerprint is what counts.
const identityLife = 10 * 365 * 24 * time.Hour

// NewIdentity makes one for all links of a host: a key a link costs time at each offer and hides nothing, for the
// addresses are the same.
func NewIdentity(now time.Time) (*Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("DTLS key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64))
	if err != nil {
		return nil, fmt.Errorf("DTLS certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "WebRTC"},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(identityLife),
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("DTLS certificate: %w", err)
	}
	return &Identity{tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, sha256.Sum256(raw)}, nil
}

// Handshake makes keys with the other side, which is at remote and whose certificate must have the fingerprint. The caller closes conn.
func (id *Identity) Handshake(ctx context.Context, conn net.PacketConn, remote net.Addr, client bool, fingerprint [32]byte, more ...dtls.Option) (*dtls.Conn, error) {
	options := append([]dtls.Option{
		dtls.WithCertificates(id.Certificate),
		dtls.WithExtendedMasterSecret(dtls.RequireExtendedMasterSecret),
		// Browsers ask for media keys with data channels too, and pion refuses a peer that it shares no profile with.
		dtls.WithSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_80),
		dtls.WithInsecureSkipVerify(true), // self-signed; the fingerprint says whose it is
		dtls.WithVerifyPeerCertificate(func(raw [][]byte, _ [][]*x509.Certificate) error {
			if len(raw) == 0 || sha256.Sum256(raw[0]) != fingerprint {
				return ErrFingerprint
			}
			return nil
		}),
	}, more...)
	var peer *dtls.Conn
	var err error
	if client {
		all := make([]dtls.ClientOption, len(options))
		for i, o := range options {
			all[i] = o
		}
		peer, err = dtls.ClientWithOptions(conn, remote, all...)
	} else {
		// Hello-verify guards a server against forged source addresses that would make it amplify; here ICE's consent
		// (a check signed with this link's password, answered from that address) has shown the address before the first
		// DTLS packet is read, so the cookie's round trip would prove nothing more.
		all := []dtls.ServerOption{dtls.WithClientAuth(dtls.RequireAnyClientCert), dtls.WithInsecureSkipVerifyHello(true)}
		for _, o := range options {
			all = append(all, o)
		}
		peer, err = dtls.ServerWithOptions(conn, remote, all...)
	}
	if err != nil {
		return nil, fmt.Errorf("DTLS: %w", err)
	}
	if err := peer.HandshakeContext(ctx); err != nil {
		_ = peer.Close()
		return nil, fmt.Errorf("DTLS: %w", err)
	}
	return peer, nil
}
