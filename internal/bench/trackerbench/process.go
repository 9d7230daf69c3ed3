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

// cpu is what a process has had of processors, seconds: of each thread, by the scheduler's own clock. The figures of
// /proc/PID/stat are sampled by ticks, which a process that sleeps thousands of times a second slips through.
func cpu(pid int) (float64, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		return 0, errors.Join(err, fmt.Errorf("process %d is not there, or the kernel keeps no schedstat", pid))
	}
	total := int64(0)
	for _, file := range threads {
		b, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // it ended just now
		}
		if err != nil {
			return 0, err
		}
		on, _, _ := strings.Cut(string(b), " ")
		ns, err := strconv.ParseInt(on, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		total += ns
	}
	return float64(total) / 1e9, nil
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
