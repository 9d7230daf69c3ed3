package rtclink

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

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
	k, err := prf.GenerateEncryptionKeys(s.MasterSecret, client[:], server[:], 0, 16, 4, sha256New)
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

// datagrams is what records travel over: an ICE connection.
type datagrams interface {
	io.ReadWriter
	SetReadDeadline(time.Time) error
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
}

// records is the connection that SCTP runs over: a message is the payload of one record. Read belongs to one goroutine.
type records struct {
	conn  datagrams
	keys  *keys
	begin func() ([][]byte, error) // waits for the handshake to let go of conn; returns what came meanwhile
	stop  func()                   // ends that waiting
	idle  func()                   // called by Read: what was read before has been dealt with, and may have ended a message

	// Of the reading goroutine.
	early  [][]byte
	rest   []byte // of the datagram that is being read
	window replayWindow
	unread unread
	more   bool // what was read last may have ended a message
	nonceR [12]byte
	aadR   [recordHeader]byte

	mu       sync.Mutex // of writing
	sequence uint64     // guarded by mu
	nonceW   [12]byte   // guarded by mu
	aadW     [recordHeader]byte
	closed   bool // guarded by mu
}

var _ net.Conn = (*records)(nil)

func newRecords(conn datagrams, k *keys, begin func() ([][]byte, error), stop, idle func()) *records {
	return &records{conn: conn, keys: k, begin: begin, stop: stop, idle: idle, sequence: firstSequence}
}

// Read returns the payload of one record. Records that are forged, repeated or of the handshake are passed over;
// the other side's alert that it closes is io.EOF.
func (r *records) Read(p []byte) (int, error) {
	if r.more {
		r.more = false
		r.idle()
	}
	if r.begin != nil {
		giveBack(p[min(maxDatagram, len(p)):]) // SCTP reads to the same 8 KiB as long as it lives
		var err error
		if r.early, err = r.begin(); err != nil {
			return 0, err
		}
		r.begin = nil // and with it what the handshake held
		r.stop()
	}
	for {
		for len(r.rest) >= recordHeader {
			record := r.next()
			if n, got, err := r.open(p, record); got || err != nil {
				return n, err
			}
		}
		if len(r.early) > 0 {
			r.rest, r.early = r.early[0], r.early[1:]
			continue
		}
		n, err := r.conn.Read(p)
		switch {
		case errors.Is(err, io.ErrShortBuffer):
			continue
		case err != nil:
			return 0, err
		}
		// Almost always a datagram is one record, which is decrypted where it is.
		if r.rest = p[:n]; n >= recordHeader && recordHeader+int(binary.BigEndian.Uint16(p[recordHeader-2:])) < n {
			r.rest = bytes.Clone(r.rest)
		}
	}
}

// next cuts the first record off rest; nil and an empty rest when that is malformed.
func (r *records) next() []byte {
	n := recordHeader + int(binary.BigEndian.Uint16(r.rest[recordHeader-2:]))
	if n > len(r.rest) {
		r.rest = nil
		return nil
	}
	record := r.rest[:n]
	r.rest = r.rest[n:]
	return record
}

// open decrypts a record to p; got says that it was application data.
func (r *records) open(p, record []byte) (n int, got bool, err error) {
	if len(record) < recordCost || binary.BigEndian.Uint16(record[1:]) != dtls12 || binary.BigEndian.Uint16(record[3:]) != 1 {
		return 0, false, nil
	}
	number := binary.BigEndian.Uint64(record[3:]) & (1<<48 - 1)
	sealed := record[recordHeader+explicit:]
	length := len(sealed) - gcmTag
	if !r.window.fresh(number) || length > len(p) {
		return 0, false, nil
	}
	copy(r.nonceR[:], r.keys.readIV[:])
	copy(r.nonceR[4:], record[recordHeader:])
	copy(r.aadR[:], record[3:11])
	copy(r.aadR[8:], record[:3])
	binary.BigEndian.PutUint16(r.aadR[11:], uint16(length))
	content := record[0]
	plain, err := r.keys.read.Open(sealed[:0], r.nonceR[:], sealed, r.aadR[:])
	if err != nil {
		return 0, false, nil // forged: as if it had never come
	}
	copy(p, plain) // over its own header: forward, which copy allows
	r.window.take(number)
	switch content {
	case contentApplication:
		r.more = r.unread.more(p[:len(plain)]) // plain has been moved
		return len(plain), len(plain) > 0, nil
	case contentAlert:
		if len(plain) == 2 && (p[0] == alertFatal || p[1] == alertCloseNotify) {
			return 0, false, io.EOF
		}
	}
	return 0, false, nil
}

// Write sends p as one record.
func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, net.ErrClosed
	}
	return len(p), r.seal(contentApplication, p)
}

// sealBuffers hold a record while it is written; links share them.
var sealBuffers = sync.Pool{New: func() any { return new([maxDatagram]byte) }}

// seal is under mu.
func (r *records) seal(content byte, p []byte) error {
	if len(p) > maxDatagram-recordCost {
		return fmt.Errorf("rtclink: record of %d bytes", len(p))
	}
	if r.sequence > lastSequence {
		return errNumbers
	}
	number := 1<<48 | r.sequence
	r.sequence++
	buf := sealBuffers.Get().(*[maxDatagram]byte)
	defer sealBuffers.Put(buf)
	b := append(buf[:0], content)
	b = binary.BigEndian.AppendUint16(b, dtls12)
	b = binary.BigEndian.AppendUint64(b, number)
	b = binary.BigEndian.AppendUint16(b, uint16(explicit+len(p)+gcmTag))
	b = binary.BigEndian.AppendUint64(b, number) // the explicit nonce: as unique as the number
	copy(r.nonceW[:], r.keys.writeIV[:])
	binary.BigEndian.PutUint64(r.nonceW[4:], number)
	copy(r.aadW[:], b[3:11])
	copy(r.aadW[8:], b[:3])
	binary.BigEndian.PutUint16(r.aadW[11:], uint16(len(p)))
	_, err := r.conn.Write(r.keys.write.Seal(b, r.nonceW[:], p, r.aadW[:]))
	return err
}

// Close tells the other side and ends Read.
func (r *records) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	_ = r.seal(contentAlert, []byte{1, alertCloseNotify}) // it may be gone already
	r.closed = true
	r.stop()
	return r.conn.SetReadDeadline(time.Unix(1, 0))
}

// LocalAddr implements net.Conn.
func (r *records) LocalAddr() net.Addr { return r.conn.LocalAddr() }

// RemoteAddr implements net.Conn.
func (r *records) RemoteAddr() net.Addr { return r.conn.RemoteAddr() }

// SetDeadline implements net.Conn.
func (r *records) SetDeadline(t time.Time) error { return r.SetReadDeadline(t) }

// SetReadDeadline implements net.Conn.
func (r *records) SetReadDeadline(t time.Time) error { return r.conn.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn; a write waits for the socket at most.
func (r *records) SetWriteDeadline(time.Time) error { return nil }

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
