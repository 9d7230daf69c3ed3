package demopage

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"go.uber.org/goleak"
)

// The pin is of the key that the page shows, which is good for the address and for no other.
func TestCertificateOfAPublicPage(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	here := netip.MustParseAddr("127.0.0.1")
	certificate, pin, err := selfSigned(here)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewUnstartedServer(http.NotFoundHandler())
	front.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	front.StartTLS()
	t.Cleanup(front.Close)
	trusted := x509.NewCertPool()
	leaf, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	trusted.AddCert(leaf)
	conn, err := tls.Dial("tcp", front.Listener.Addr().String(), &tls.Config{RootCAs: trusted})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sum := sha256.Sum256(conn.ConnectionState().PeerCertificates[0].RawSubjectPublicKeyInfo)
	if got := base64.StdEncoding.EncodeToString(sum[:]); got != pin {
		t.Errorf("the pin is %s, the key's %s", pin, got)
	}
	if leaf.VerifyHostname("127.0.0.2") == nil {
		t.Error("it is good for another address")
	}
}
