package arm

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"

	"github.com/pion/dtls/v3"
	"github.com/pion/dtls/v3/pkg/crypto/prf"
	"github.com/pion/dtls/v3/pkg/protocol/extension"
	"github.com/pion/dtls/v3/pkg/protocol/handshake"
	"github.com/pion/srtp/v3"
	"github.com/pion/transport/v4/packetio"
	"github.com/pion/webrtc/v4"
)

// direct is the socket of one session with media. If a stream has a taker, direct decrypts its packets where it reads them, and puts them
// into the stream's inbox. Pion would hand each packet from goroutine to goroutine three times before it decrypts it. That costs more than
// all else that an arm does with a packet (docs/decisions/0075). The first packets of a stream, and all while the keys are not known, go
// pion's way.
type direct struct {
	*net.UDPConn
	boxes *inboxes

	mu     sync.Mutex
	hello  *handshake.MessageServerHello // guarded by mu; nil: not yet seen
	server bool                          // guarded by mu: the hello is this side's
	random []byte                        // guarded by mu: the DTLS client's
	secret []byte                        // guarded by mu: the master secret; nil: not yet known
	keys   *srtp.Context                 // guarded by mu; nil: none
	phase  phase                         // guarded by mu
	buf    []byte                        // guarded by mu
}

// phase is how far a socket is with its keys.
type phase int

const (
	waiting phase = iota // for the handshake
	trying               // has keys that have decrypted nothing
	proven
	off // the keys are not right: pion decrypts
)

func listenDirect(address string, boxes *inboxes) (*direct, error) {
	conn, err := listenUDP(address, sessionBuffer)
	if err != nil {
		return nil, err
	}
	return &direct{UDPConn: conn, boxes: boxes, buf: make([]byte, 0, receiveMTU)}, nil
}

// settings has pion use the socket, and tell of the handshake.
func (d *direct) settings(e webrtc.SettingEngine) webrtc.SettingEngine {
	e.SetICEUDPMux(d)
	e.SetDTLSKeyLogWriter(keyLog{d})
	e.SetDTLSServerHelloMessageHook(func(m handshake.MessageServerHello) handshake.Message {
		d.greeted(&m, true)
		return &m
	})
	return e
}

// The methods of ice.UDPMux, for the one session.

// GetConn implements ice.UDPMux.
func (d *direct) GetConn(string, net.Addr) (net.PacketConn, error) { return d, nil }

// RemoveConnByUfrag implements ice.UDPMux.
func (d *direct) RemoveConnByUfrag(string) {}

// GetListenAddresses implements ice.UDPMux.
func (d *direct) GetListenAddresses() []net.Addr { return []net.Addr{d.LocalAddr()} }

// ReadFromAddrPort implements ice.AddrPortReaderWriter.
func (d *direct) ReadFromAddrPort(b []byte) (int, netip.AddrPort, error) {
	for {
		n, from, err := d.ReadFromUDPAddrPort(b)
		if err != nil || !d.take(b[:n]) {
			return n, from, err
		}
	}
}

// WriteToAddrPort implements ice.AddrPortReaderWriter.
func (d *direct) WriteToAddrPort(b []byte, to netip.AddrPort) (int, error) {
	return d.WriteToUDPAddrPort(b, to)
}

// take sees a packet; false says that it is pion's.
func (d *direct) take(b []byte) bool {
	switch {
	case len(b) > 12 && b[0]>>6 == 2 && (b[1] < 192 || b[1] > 223): // RTP (RFC 7983, RFC 5761)
		in := d.boxes.of(packetio.RTPBufferPacket, webrtc.SSRC(binary.BigEndian.Uint32(b[8:])))
		if in == nil {
			return false
		}
		rolled, goes := in.follows(binary.BigEndian.Uint16(b[2:]))
		return goes && d.decrypt(in, b, rolled)
	case len(b) > 0 && b[0] == 22:
		if m := serverHello(b); m != nil {
			d.greeted(m, false)
		}
	}
	return false
}

// decrypt puts a packet into its inbox; false says that the keys cannot do it.
func (d *direct) decrypt(in *inbox, b []byte, rolled uint32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase == waiting {
		d.phase = d.derive()
	}
	if d.phase != trying && d.phase != proven {
		return false
	}
	if !in.direct {
		d.keys.SetROC(binary.BigEndian.Uint32(b[8:]), rolled)
	}
	plain, err := d.keys.DecryptRTP(d.buf, b, nil)
	switch {
	case err == nil:
		d.phase, in.direct = proven, true
		_, _ = in.Write(plain) // a taker takes it
	case d.phase == trying:
		d.phase = off
		return false
	}
	return true // a packet that was changed, or that came twice, is dropped, as pion would
}

// derive makes the keys of the peer's media (RFC 5764, 4.2).
func (d *direct) derive() phase {
	if d.hello == nil || d.secret == nil {
		return waiting
	}
	if d.hello.CipherSuiteID == nil || dtls.CipherSuiteID(*d.hello.CipherSuiteID) != dtls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 {
		return off // another hash, maybe
	}
	var cfg srtp.Config
	for _, e := range d.hello.Extensions {
		if u, ok := e.(*extension.UseSRTP); ok && len(u.ProtectionProfiles) == 1 {
			cfg.Profile = srtp.ProtectionProfile(u.ProtectionProfiles[0])
		}
	}
	if err := cfg.ExtractSessionKeysFromDTLS(d, !d.server); err != nil {
		return off
	}
	keys, err := srtp.CreateContext(cfg.Keys.RemoteMasterKey, cfg.Keys.RemoteMasterSalt, cfg.Profile, srtp.SRTPReplayProtection(64))
	if err != nil {
		return off
	}
	d.keys = keys
	return trying
}

// ExportKeyingMaterial implements srtp.KeyingMaterialExporter (RFC 5705). It is called under mu.
func (d *direct) ExportKeyingMaterial(label string, _ []byte, length int) ([]byte, error) {
	server := d.hello.Random.MarshalFixed()
	seed := append(append([]byte(label), d.random...), server[:]...)
	return prf.PHash(d.secret, seed, length, sha256.New)
}

// greeted notes the hello of the DTLS server.
func (d *direct) greeted(m *handshake.MessageServerHello, server bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phase == waiting {
		d.hello, d.server = m, server
	}
}

// keyLog takes a session's line of the key log.
type keyLog struct{ d *direct }

// Write implements io.Writer.
func (k keyLog) Write(b []byte) (int, error) {
	words := strings.Fields(string(b))
	if len(words) != 3 || words[0] != "CLIENT_RANDOM" {
		return len(b), nil // of a version whose keys are made otherwise
	}
	random, err := hex.DecodeString(words[1])
	secret, bad := hex.DecodeString(words[2])
	if err = errors.Join(err, bad); err != nil {
		return 0, err
	}
	k.d.mu.Lock()
	defer k.d.mu.Unlock()
	k.d.random, k.d.secret = random, secret
	return len(b), nil
}

// What stands before a hello.
const (
	recordHeader    = 13
	handshakeHeader = 12
)

// serverHello is the hello of a DTLS server that a datagram begins with; nil: it does not.
func serverHello(b []byte) *handshake.MessageServerHello {
	const head = recordHeader + handshakeHeader
	if len(b) < head || b[0] != 22 || b[recordHeader] != byte(handshake.TypeServerHello) {
		return nil
	}
	length := func(at int) int { return int(b[at])<<16 | int(b[at+1])<<8 | int(b[at+2]) }
	n := length(recordHeader + 1)
	if whole := length(recordHeader+6) == 0 && length(recordHeader+9) == n; !whole || len(b) < head+n {
		return nil
	}
	var m handshake.MessageServerHello
	if m.Unmarshal(b[head:head+n]) != nil {
		return nil
	}
	return &m
}
