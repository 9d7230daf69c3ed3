package demopage

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// publicAddress is of a network that browsers take for public (TEST-NET-3): a page from there is kept from the viewer's own
// network until the viewer allows it, as a site's page is. A page on loopback never is.
var publicAddress = netip.MustParseAddrPort("203.0.113.250:8080")

// HavePublic gives a host the address of public pages, on loopback: browsers find their page there, and a site's own host
// knows by it what its pages are called.
func HavePublic(ctx context.Context, host *netlab.Host) error {
	out, err := host.Command(ctx, "ip", "addr", "replace", publicAddress.Addr().String()+"/32", "dev", "lo").CombinedOutput()
	if err != nil {
		return fmt.Errorf("host %s: address of public pages: %w: %s", host.Name(), err, out)
	}
	return nil
}

// OpenPublic is Open for a page over HTTPS on an address that browsers take for public. Its certificate is its own; the
// browser is told to take it.
func OpenPublic(ctx context.Context, host *netlab.Host, page http.Handler, query string, output io.Writer) (*Browser, error) {
	if err := HavePublic(ctx, host); err != nil {
		return nil, err
	}
	certificate, pin, err := selfSigned(publicAddress.Addr())
	if err != nil {
		return nil, err
	}
	listener, err := host.Listen(ctx, "tcp", publicAddress.String())
	if err != nil {
		return nil, err
	}
	return Launch(ctx, Options{
		Listener: tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}), Secure: true,
		Page: page, Query: query, Flags: []string{"--ignore-certificate-errors-spki-list=" + pin}, Output: output, Start: inside(host),
	})
}

// selfSigned makes a certificate of an address, and what Chromium calls its key.
func selfSigned(addr netip.Addr) (c tls.Certificate, pin string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, "", err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), IPAddresses: []net.IP{addr.AsSlice()},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return c, "", err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return c, "", err
	}
	sum := sha256.Sum256(parsed.RawSubjectPublicKeyInfo)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, base64.StdEncoding.EncodeToString(sum[:]), nil
}
