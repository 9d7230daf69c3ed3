package turnclient

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/pion/stun/v4"
)

const (
	channelHeader = 4 // bytes before what a channel carries: its number, and how many bytes those are

	lineChannel = 0x4000
	lineTries   = 3
	lineWait    = time.Second
)

// Line is a client's channel to one peer without what a client needs to live on: nothing is refreshed, no goroutine runs. Benches
// that need many, or need them to cost little, write and read frames on its socket (Frame, Payload). It is good for five minutes,
// for which a permission lasts.
type Line struct {
	*net.UDPConn
	Relayed netip.AddrPort

	username, password, realm string
	nonce                     stun.Nonce
}

// OpenLine asks a relay over UDP for an allocation, from a local address (its port may be 0), and binds a channel to a peer. Closing
// it leaves the allocation to its end; Release gives it back.
func OpenLine(from, relay, peer netip.AddrPort, username, password string) (*Line, error) {
	conn, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(from), net.UDPAddrFromAddrPort(relay))
	if err != nil {
		return nil, fmt.Errorf("turnclient: %w", err)
	}
	l := &Line{UDPConn: conn, username: username, password: password}
	if err := l.open(peer); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("turnclient: line by way of %s: %w", relay, err)
	}
	return l, nil
}

func (l *Line) open(peer netip.AddrPort) error {
	answer, err := l.request(stun.MethodAllocate, stun.RawAttribute{Type: stun.AttrRequestedTransport, Value: []byte{17, 0, 0, 0}})
	if err != nil {
		return err
	}
	var at stun.XORMappedAddress
	if err := at.GetFromAs(answer, stun.AttrXORRelayedAddress); err != nil {
		return err
	}
	ip, _ := netip.AddrFromSlice(at.IP)
	l.Relayed = netip.AddrPortFrom(ip.Unmap(), uint16(at.Port))
	number := binary.BigEndian.AppendUint16(nil, lineChannel)
	_, err = l.request(stun.MethodChannelBind, stun.RawAttribute{Type: stun.AttrChannelNumber, Value: append(number, 0, 0)}, peerAddress(peer))
	if err == nil {
		err = l.SetReadDeadline(time.Time{})
	}
	return err
}

// Release gives the allocation back and closes the socket.
func (l *Line) Release() error {
	_, err := l.request(stun.MethodRefresh, stun.RawAttribute{Type: stun.AttrLifetime, Value: make([]byte, 4)})
	return errors.Join(err, l.Close())
}

// request is answered in time, or said again: datagrams get lost. The relay's nonce is asked for by the first that there is.
func (l *Line) request(method stun.Method, attributes ...stun.Setter) (*stun.Message, error) {
	var refused error
	for range lineTries {
		setters := append([]stun.Setter{stun.TransactionID, stun.NewType(method, stun.ClassRequest)}, attributes...)
		if l.nonce != nil {
			setters = append(setters, stun.NewUsername(l.username), stun.NewRealm(l.realm), l.nonce,
				stun.NewLongTermIntegrity(l.username, l.realm, l.password))
		}
		m, err := stun.Build(setters...)
		if err != nil {
			return nil, err
		}
		if _, err := l.Write(m.Raw); err != nil {
			return nil, err
		}
		answer, err := l.answer(m.TransactionID)
		if err != nil {
			if refused = err; errors.Is(err, net.ErrClosed) {
				return nil, err
			}
			continue
		}
		if answer.Type.Class == stun.ClassSuccessResponse {
			return answer, nil
		}
		var code stun.ErrorCodeAttribute
		if err := code.GetFrom(answer); err != nil {
			return nil, err
		}
		refused = fmt.Errorf("%s: %s", method, code)
		if (code.Code != stun.CodeUnauthorized || l.nonce != nil) && code.Code != stun.CodeStaleNonce {
			return nil, refused
		}
		if err := l.challenged(answer); err != nil {
			return nil, err
		}
	}
	return nil, refused
}

// challenged takes what requests have to be signed with.
func (l *Line) challenged(answer *stun.Message) error {
	var realm stun.Realm
	if err := errors.Join(realm.GetFrom(answer), l.nonce.GetFrom(answer)); err != nil {
		return err
	}
	l.realm = realm.String()
	return nil
}

// answer reads the answer to a transaction. What else arrives is of an earlier try.
func (l *Line) answer(to [stun.TransactionIDSize]byte) (*stun.Message, error) {
	if err := l.SetReadDeadline(time.Now().Add(lineWait)); err != nil {
		return nil, err
	}
	p := make([]byte, 1600)
	for {
		n, err := l.Read(p)
		if err != nil {
			return nil, err
		}
		m := &stun.Message{Raw: p[:n]}
		if stun.IsMessage(p[:n]) && m.Decode() == nil && m.TransactionID == to {
			return m, nil
		}
	}
}

type peerAddress netip.AddrPort

// AddTo implements stun.Setter.
func (a peerAddress) AddTo(m *stun.Message) error {
	at := netip.AddrPort(a)
	return stun.XORMappedAddress{IP: at.Addr().AsSlice(), Port: int(at.Port())}.AddToAs(m, stun.AttrXORPeerAddress)
}

// Frame is n bytes of zeros to a line's peer, as they go to the relay.
func Frame(n int) []byte {
	f := make([]byte, channelHeader+n)
	binary.BigEndian.PutUint16(f, lineChannel)
	binary.BigEndian.PutUint16(f[2:], uint16(n))
	return f
}

// Payload is what a frame from the relay carries; false: it is none of a line's.
func Payload(frame []byte) ([]byte, bool) {
	if len(frame) < channelHeader || binary.BigEndian.Uint16(frame) != lineChannel {
		return nil, false
	}
	n := int(binary.BigEndian.Uint16(frame[2:]))
	if channelHeader+n > len(frame) {
		return nil, false
	}
	return frame[channelHeader : channelHeader+n], true
}
