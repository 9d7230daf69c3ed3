package testkit

import (
	"crypto/ecdsa"
	"testing"

	"github.com/leeway-video/leeway/internal/certificate"
)

// PackagerKey is a new packager's key.
func PackagerKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	text, err := certificate.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := certificate.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
