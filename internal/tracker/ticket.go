package tracker

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/wire/signal"
)

// ticketer makes and opens tickets: AES-256-GCM over session, tracker, time and site, with a key that all trackers share.
type ticketer struct{ seal cipher.AEAD }

// stub is what a ticket says.
type stub struct {
	session signal.ID
	tracker signal.ID // that issued it, and may still hold the session
	expires time.Time
	site    string
}

var errTicket = errors.New("ticket is not ours or has expired")

func newTicketer(key []byte) (*ticketer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("tracker: ticket key: %w", err)
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("tracker: ticket key: %w", err)
	}
	return &ticketer{seal}, nil
}

func (t *ticketer) issue(s stub) string {
	plain := make([]byte, 0, 40+len(s.site))
	plain = append(plain, s.session[:]...)
	plain = append(plain, s.tracker[:]...)
	plain = binary.BigEndian.AppendUint64(plain, uint64(s.expires.UnixMilli()))
	plain = append(plain, s.site...)
	nonce := make([]byte, t.seal.NonceSize(), t.seal.NonceSize()+len(plain)+t.seal.Overhead())
	_, _ = rand.Read(nonce) // never fails
	return base64.RawURLEncoding.EncodeToString(t.seal.Seal(nonce, nonce, plain, nil))
}

func (t *ticketer) open(ticket string, now time.Time) (stub, error) {
	raw, err := base64.RawURLEncoding.DecodeString(ticket)
	if err != nil || len(raw) < t.seal.NonceSize() {
		return stub{}, errTicket
	}
	plain, err := t.seal.Open(nil, raw[:t.seal.NonceSize()], raw[t.seal.NonceSize():], nil)
	if err != nil || len(plain) < 40 {
		return stub{}, errTicket
	}
	s := stub{
		session: signal.ID(plain[:16]), tracker: signal.ID(plain[16:32]),
		expires: time.UnixMilli(int64(binary.BigEndian.Uint64(plain[32:40]))), site: string(plain[40:]),
	}
	if now.After(s.expires) {
		return stub{}, errTicket
	}
	return s, nil
}
