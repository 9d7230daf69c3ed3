package rtclink

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/pion/dtls/v3"
	"github.com/pion/dtls/v3/pkg/crypto/prf"
)

// DTLS 1.2 records (RFC 6347) under TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, the cipher suite that every WebRTC end has
// (RFC 8827). Pion makes the handshake; the records after it are ours, for pion starts two goroutines for each that it
// writes and one for each that it reads, and keeps four of them a link.
const (
	recordHeader = 13
	explicit     = 8 // bytes of nonce in a record
	gcmTag       = 16
	recordCost   = recordHeader + explicit + gcmTag
	maxDatagram  = 2048 // SCTP's packets are below 1,200 bytes

	contentAlert       = 21
	contentHandshake   = 22
	contentApplication = 23
	dtls12             = 0xfefd
	alertFatal         = 2
	alertCloseNotify   = 0

	// firstSequence is where our numbers of epoch 1 begin: behind those that the handshake's last message can have, and
	// within the receiver's replay window of them. The handshake is not let beyond it (usesOurs).
	firstSequence = 32
	// lastSequence is their last: one more would be of another epoch, and the nonce of a number that was used. A link that sends a
	// million packets a second gets there in nine years.
	lastSequence = 1<<48 - 1
)

var errNumbers = errors.New("rtclink: all record numbers are used")

// keys are what a finished handshake leaves.
type keys struct {
	write, read     cipher.AEAD
	writeIV, readIV [4]byte
}

// keysOf takes the keys out of a finished handshake. Pion tells the master secret only in the form in which it stores
// sessions, which gob reads by the names of its fields.
func keysOf(state dtls.State) (*keys, error) {
	stored, err := state.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("DTLS state: %w", err)
	}
	var s struct {
		LocalEpoch, RemoteEpoch   uint16
		LocalRandom, RemoteRandom [32]byte
		CipherSuiteID             uint16
		MasterSecret              []byte
		IsClient                  bool
	}
	if err := gob.NewDecoder(bytes.NewReader(stored)).Decode(&s); err != nil {
		return nil, fmt.Errorf("DTLS state: %w", err)
	}
	suite := dtls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
	if s.CipherSuiteID != uint16(suite) || s.LocalEpoch != 1 || s.RemoteEpoch != 1 || len(s.MasterSecret) != 48 {
		return nil, fmt.Errorf("DTLS state: suite %#x, epochs %d and %d", s.CipherSuiteID, s.LocalEpoch, s.RemoteEpoch)
	}
	client, server := s.LocalRandom, s.RemoteRandom
	if !s.IsClient {
		client, server = server, client
	}
	k, err := prf.GenerateEncryptionKeys(s.MasterSecret, client[:], server[:], 0, 16, 4, sha256.New)
	if err != nil {
		return nil, fmt.Errorf("DTLS keys: %w", err)
	}
	out := &keys{}
	if !s.IsClient {
		k.ClientWriteKey, k.ServerWriteKey = k.ServerWriteKey, k.ClientWriteKey
		k.ClientWriteIV, k.ServerWriteIV = k.ServerWriteIV, k.ClientWriteIV
	}
	copy(out.writeIV[:], k.ClientWriteIV)
	copy(out.readIV[:], k.ServerWriteIV)
	if out.write, err = newGCM(k.ClientWriteKey); err != nil {
		return nil, err
	}
	out.read, err = newGCM(k.ServerWriteKey)
	return out, err
}

func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("DTLS keys: %w", err)
	}
	return cipher.NewGCM(block)
}

// sealer writes records, each with a number of its own.
type sealer struct {
	out io.Writer
	key cipher.AEAD
	iv  [4]byte

	mu       sync.Mutex
	sequence uint64             // guarded by mu
	nonce    [12]byte           // guarded by mu
	aad      [recordHeader]byte // guarded by mu
	closed   bool               // guarded by mu
}

// Write sends p as one record.
func (s *sealer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, net.ErrClosed
	}
	return len(p), s.seal(contentApplication, p)
}

// close tells the other side and sends nothing more; false says that it was closed already.
func (s *sealer) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	_ = s.seal(contentAlert, []byte{1, alertCloseNotify}) // it may be gone already
	s.closed = true
	return true
}

// sealBuffers hold a record while it is written; links share them.
var sealBuffers = sync.Pool{New: func() any { return new([maxDatagram]byte) }}

// seal is under mu.
func (s *sealer) seal(content byte, p []byte) error {
	if len(p) > maxDatagram-recordCost {
		return fmt.Errorf("rtclink: record of %d bytes", len(p))
	}
	if s.sequence > lastSequence {
		return errNumbers
	}
	number := 1<<48 | s.sequence
	s.sequence++
	buf := sealBuffers.Get().(*[maxDatagram]byte)
	defer sealBuffers.Put(buf)
	b := append(buf[:0], content)
	b = binary.BigEndian.AppendUint16(b, dtls12)
	b = binary.BigEndian.AppendUint64(b, number)
	b = binary.BigEndian.AppendUint16(b, uint16(explicit+len(p)+gcmTag))
	b = binary.BigEndian.AppendUint64(b, number) // the explicit nonce: as unique as the number
	copy(s.nonce[:], s.iv[:])
	binary.BigEndian.PutUint64(s.nonce[4:], number)
	copy(s.aad[:], b[3:11])
	copy(s.aad[8:], b[:3])
	binary.BigEndian.PutUint16(s.aad[11:], uint16(len(p)))
	_, err := s.out.Write(s.key.Seal(b, s.nonce[:], p, s.aad[:]))
	return err
}

// opener decrypts records. It belongs to one goroutine.
type opener struct {
	key    cipher.AEAD
	iv     [4]byte
	window replayWindow
	nonce  [12]byte
	aad    [recordHeader]byte
}

// open decrypts a record to p and returns its content type; false says that it is none of this connection's, forged or repeated.
func (o *opener) open(p, record []byte) (plain []byte, content byte, ok bool) {
	if len(record) < recordCost || binary.BigEndian.Uint16(record[1:]) != dtls12 || binary.BigEndian.Uint16(record[3:]) != 1 {
		return nil, 0, false
	}
	number := binary.BigEndian.Uint64(record[3:]) & (1<<48 - 1)
	sealed := record[recordHeader+explicit:]
	length := len(sealed) - gcmTag
	if !o.window.fresh(number) || length > len(p) {
		return nil, 0, false
	}
	copy(o.nonce[:], o.iv[:])
	copy(o.nonce[4:], record[recordHeader:])
	copy(o.aad[:], record[3:11])
	copy(o.aad[8:], record[:3])
	binary.BigEndian.PutUint16(o.aad[11:], uint16(length))
	content = record[0]
	opened, err := o.key.Open(sealed[:0], o.nonce[:], sealed, o.aad[:])
	if err != nil {
		return nil, 0, false // forged: as if it had never come
	}
	copy(p, opened) // over its own header: forward, which copy allows
	o.window.take(number)
	return p[:len(opened)], content, true
}

// replayWindow refuses record numbers that came before (RFC 6347, 4.1.2.6).
type replayWindow struct {
	next uint64 // one above the highest taken
	seen uint64 // of the 64 below next, the highest in bit 0
}

func (w *replayWindow) fresh(n uint64) bool {
	return n >= w.next || w.next-n <= 64 && w.seen>>(w.next-n-1)&1 == 0
}

func (w *replayWindow) take(n uint64) {
	if n >= w.next {
		w.seen = w.seen<<(n-w.next+1) | 1 // a shift by 64 or more leaves none
		w.next = n + 1
		return
	}
	w.seen |= 1 << (w.next - n - 1)
}
