package hosted

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// Certificate is one of an address, and its key, in PEM files of a folder of their own that any server can read. Clients can take it for an authority.
type Certificate struct{ Dir, Cert, Key string }

// NewCertificate makes one that is good for a day. It needs a Remove.
func NewCertificate(of netip.Addr) (*Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, IPAddresses: []net.IP{of.AsSlice()}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "leeway-bench-tls-")
	if err != nil {
		return nil, err
	}
	c := &Certificate{dir, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	err = errors.Join(
		os.WriteFile(c.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(c.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	if err != nil {
		return nil, errors.Join(err, c.Remove())
	}
	return c, nil
}

// Remove deletes the files.
func (c *Certificate) Remove() error { return os.RemoveAll(c.Dir) }
