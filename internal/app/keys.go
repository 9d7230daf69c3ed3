package app

import (
	"crypto/ecdsa"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/leeway-video/leeway/internal/certificate"
)

// The tracker's secret in the data folder, readable by its owner alone: base64url, 32 bytes. It keys swarm IDs and tickets,
// so it is the same on all trackers. (The seed keeps its signing key itself.)
const (
	secretFile  = "tracker.secret"
	secretBytes = 32
)

// trackerSecret reads the secret from the data folder, or makes one.
func trackerSecret(dir string) ([]byte, error) {
	text, err := keep(dir, secretFile, func() ([]byte, error) {
		secret, err := newSecret()
		return []byte(secret + "\n"), err
	})
	if err != nil {
		return nil, err
	}
	return decodeSecret(string(text), filepath.Join(dir, secretFile))
}

// newSecret is a secret as every key takes it: 32 random bytes in base64url, 43 characters. It begins with a letter: nats.conf reads what
// begins otherwise as a number, a date or neither, and the NATS server does not start.
func newSecret() (string, error) {
	secret := make([]byte, secretBytes)
	for {
		if _, err := rand.Read(secret); err != nil {
			return "", err
		}
		if text := base64.RawURLEncoding.EncodeToString(secret); text[0]|0x20 >= 'a' && text[0]|0x20 <= 'z' {
			return text, nil
		}
	}
}

// decodeSecret reads a secret of at least 32 bytes, in base64 of either alphabet; where names its place in errors.
func decodeSecret(text, where string) ([]byte, error) {
	text = strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(strings.TrimSpace(text), "="))
	secret, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(secret) < secretBytes {
		return nil, fmt.Errorf("%s: is no secret of %d bytes in base64url (remove it and a new one is made; viewers then rejoin)", where, secretBytes)
	}
	return secret, nil
}

// packagerKey reads a packager's signing key from a file, or makes it. public is as a site's configuration has it.
func packagerKey(file string) (key *ecdsa.PrivateKey, public string, made bool, err error) {
	text, err := keep(filepath.Dir(file), filepath.Base(file), func() ([]byte, error) {
		made = true
		return certificate.NewKey()
	})
	if err != nil {
		return nil, "", false, fmt.Errorf("signing key: %w", err)
	}
	if key, err = certificate.ParseKey(text); err == nil {
		public, err = certificate.Public(key)
	}
	if err != nil {
		return nil, "", false, fmt.Errorf("signing key %s: %w (remove it to have a new one made)", file, err)
	}
	return key, public, made, nil
}

// keep returns the content of a file, which it makes when it is missing: written whole under another name, then linked,
// so that of two processes that start together one wins and both read the same.
func keep(dir, name string, generate func() ([]byte, error)) ([]byte, error) {
	path := filepath.Join(dir, name)
	const hint = "the folder has to be one that this user can read and write"
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		return text, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("keys: read: %w (%s)", err, hint)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("keys: make the folder: %w (%s)", err, hint)
	}
	fresh, err := generate()
	if err != nil {
		return nil, fmt.Errorf("keys: make %s: %w", name, err)
	}
	temporary, err := os.CreateTemp(dir, "."+name+"-") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("keys: write %s: %w (%s)", path, err, hint)
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(fresh)
	if err := errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return nil, fmt.Errorf("keys: write %s: %w (%s)", path, err, hint)
	}
	if err := os.Link(temporary.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("keys: write %s: %w (%s)", path, err, hint)
	}
	return os.ReadFile(path)
}
