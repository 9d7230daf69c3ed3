package trackerbench

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
)

// process is a tracker that is measured.
type process struct {
	name    string
	address string // HOST:PORT
	pid     int
	stop    func() error
}

// starter starts a tracker on its core.
type starter func(ctx context.Context, r *bench.Run, pair *certificate, secure bool) (*process, error)

// certificate is one for 127.0.0.1, in files that any server can read.
type certificate struct{ dir, cert, key string }

func newCertificate() (*certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "leeway-bench-tracker-")
	if err != nil {
		return nil, err
	}
	c := &certificate{dir, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	err = errors.Join(
		os.WriteFile(c.cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(c.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	if err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return c, nil
}

func (c *certificate) remove() error { return os.RemoveAll(c.dir) }
