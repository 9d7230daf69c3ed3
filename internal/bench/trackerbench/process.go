package trackerbench

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/bench"
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

// ticksPerSecond is of /proc/PID/stat; Linux has told every program 100 for decades.
const ticksPerSecond = 100

// cpu is what a process has had of processors, seconds.
func cpu(pid int) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, in brackets, may hold anything; the state follows it, then numbers.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return float64(user+system) / ticksPerSecond, errors.Join(err1, err2)
}

// resident is the memory of a process that is there, bytes.
func resident(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if size, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(size), "kB")), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status tells no VmRSS", pid)
}

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
