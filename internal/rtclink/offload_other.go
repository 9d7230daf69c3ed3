//go:build !linux

package rtclink

import (
	"net"
	"net/netip"
)

// cutMessage would tell the kernel the size of joined packets; nothing is joined here.
type cutMessage struct{}

func (*cutMessage) into(int) []byte { return nil }

func canCut(*net.UDPConn) bool { return false }
func cannotCut(error) bool     { return false }

// inbox reads a socket, a packet at a time.
type inbox struct{ conn *net.UDPConn }

func newInbox(conn *net.UDPConn) (*inbox, error) { return &inbox{conn}, nil }

func (i *inbox) read() (arrival, error) {
	s := slabs.Get().(*slab)
	n, from, err := i.conn.ReadFromUDPAddrPort(s.buf[:])
	if err != nil {
		slabs.Put(s)
		return arrival{}, err
	}
	s.refs.Store(1)
	return arrival{slab: s, n: n, size: max(n, 1), from: netip.AddrPortFrom(from.Addr().Unmap(), from.Port())}, nil
}
