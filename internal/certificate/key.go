package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
)

// base64url is how configurations write public keys.
var base64url = base64.RawURLEncoding.Strict()

// Public is the public half of a signing key as configurations have it: the uncompressed point in base64url.
func Public(key *ecdsa.PrivateKey) (string, error) {
	point, err := key.PublicKey.Bytes()
	return base64url.EncodeToString(point), err
}

// ParsePublic reads a packager's public key, as Public writes it. What it vouches for is the caller's to say.
func ParsePublic(text string) (VerifyKey, error) {
	point, err := base64url.DecodeString(text)
	if err != nil {
		return VerifyKey{}, errors.New("it is not base64url without padding")
	}
	if _, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point); err != nil {
		return VerifyKey{}, errors.New("it is no uncompressed P-256 point of 65 bytes")
	}
	return VerifyKey{KeyID: keyIDOfPoint(point), Key: point, Alg: Packager}, nil
}

// ParseKey reads a signing key: ECDSA P-256, PKCS #8 in PEM.
func ParseKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it is not PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("it is not ECDSA P-256")
	}
	return key, nil
}

// NewKey makes a signing key, as ParseKey reads it.
func NewKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
