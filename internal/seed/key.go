package seed

import (
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/leeway-video/leeway/internal/certificate"
)

const keyFile = "seed-key.pem"

// signer is the key that certificates are signed with. It never changes; a revoked one is replaced.
type signer struct {
	key   *ecdsa.PrivateKey
	id    certificate.KeyID
	point []byte // of the public key
}

func newSigner(key *ecdsa.PrivateKey) (*signer, error) {
	point, err := key.PublicKey.Bytes()
	if err != nil {
		return nil, fmt.Errorf("seed: signing key: %w", err)
	}
	return &signer{key, certificate.KeyIDOf(&key.PublicKey), point}, nil
}

// loadSigner reads the signing key of a data directory, or makes it.
func loadSigner(dir string) (*signer, error) {
	key, err := loadKey(dir)
	if err != nil {
		return nil, err
	}
	return newSigner(key)
}

// makeSigner puts another key in the place of the one that is there.
func makeSigner(dir string) (*signer, error) {
	key, err := makeKey(dir, filepath.Join(dir, keyFile))
	if err != nil {
		return nil, err
	}
	return newSigner(key)
}

// loadKey reads the signing key of a data directory, or makes it: ECDSA P-256, readable by its owner alone.
func loadKey(dir string) (*ecdsa.PrivateKey, error) {
	path := filepath.Join(dir, keyFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(dir, path)
	}
	if err != nil {
		return nil, fmt.Errorf("seed: read signing key %s: %w", path, err)
	}
	key, err := certificate.ParseKey(b)
	if err != nil {
		return nil, fmt.Errorf("seed: signing key %s: %w (remove it to have a new one made)", path, err)
	}
	return key, nil
}

func makeKey(dir, path string) (*ecdsa.PrivateKey, error) {
	text, err := certificate.NewKey()
	if err != nil {
		return nil, fmt.Errorf("seed: make signing key: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("seed: data directory: %w", err)
	}
	if err := writeAtomic(path, true, text); err != nil {
		return nil, fmt.Errorf("seed: write signing key: %w", err)
	}
	return certificate.ParseKey(text)
}

// writeAtomic writes a file that is either whole or not there, readable by its owner alone. After a loss of power that holds
// only if it is durable; what is checked when it is read need not be.
func writeAtomic(path string, durable bool, parts ...[]byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return err
	}
	for _, p := range parts {
		if _, err = f.Write(p); err != nil {
			break
		}
	}
	if err == nil && durable {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
