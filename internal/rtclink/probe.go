package rtclink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/pion/stun/v4"
)

const (
	askEvery   = 500 * time.Millisecond // a STUN server that does not answer
	askAtMost  = 8                      // times
	anyoneUser = "leeway"               // of the side that probes
)

// expected is what a host listens for beside its links.
type expected struct {
	key  string
	rung func()
}

// Announced is where others are told that this host is.
func (h *Host) Announced() (all []netip.AddrPort) {
	if h.socket == nil {
		return nil
	}
	port := h.Addr().Port()
	for _, a := range h.cfg.Announce {
		all = append(all, netip.AddrPortFrom(a, port))
	}
	if len(all) > 0 {
		return all
	}
	for _, a := range h.socket.mux.addrs {
		if udp, ok := a.(*net.UDPAddr); ok {
			at := udp.AddrPort()
			all = append(all, netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()))
		}
	}
	return all
}

// Expect has rung called for each packet that carries key: Probe sends one. It is not answered. rung must not block.
func (h *Host) Expect(key string, rung func()) {
	h.socket.mux.expected.Store(&expected{key, rung})
}

// unclaimed deals with a request for an agent that is not there.
func (m *mux) unclaimed(ufrag []byte) {
	if e := m.expected.Load(); e != nil && e.key == string(ufrag) {
		e.rung()
	}
}

// Probe sends a packet to a host that expects it, once: a binding request (RFC 8489), which is shorter than what asks for it
// on the way here, and which no host answers.
func Probe(to netip.AddrPort, key string) error {
	m, err := stun.Build(stun.TransactionID, stun.BindingRequest, stun.NewUsername(key+":"+anyoneUser), stun.Fingerprint)
	if err != nil {
		return fmt.Errorf("rtclink: probe: %w", err)
	}
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return fmt.Errorf("rtclink: probe: %w", err)
	}
	defer conn.Close()
	_, err = conn.Write(m.Raw)
	return err
}

// Mapped asks a STUN server as which addresses a socket on listen is seen from there, at most one of each family. The socket
// is closed again: the next socket that listens there is behind the same mapping, if the network keeps ports.
func Mapped(ctx context.Context, listen, server string) (seen []netip.AddrPort, err error) {
	local, err := net.ResolveUDPAddr("udp", listen)
	if err != nil {
		return nil, fmt.Errorf("rtclink: listen address %q: %w", listen, err)
	}
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		host, port = server, "3478"
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "udp", port)
	if err != nil {
		return nil, fmt.Errorf("rtclink: STUN server %q: %w", server, err)
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("rtclink: STUN server %q: %w", server, err)
	}
	var errs []error
	for _, network := range []string{"udp4", "udp6"} {
		for _, a := range addrs {
			if a = a.Unmap(); a.Is4() != (network == "udp4") || !local.IP.IsUnspecified() && local.IP != nil && (local.IP.To4() != nil) != a.Is4() {
				continue
			}
			at, err := mapped(ctx, network, local, netip.AddrPortFrom(a, uint16(number)))
			if err == nil {
				seen = append(seen, at)
				break
			}
			errs = append(errs, err)
		}
	}
	if len(seen) == 0 {
		return nil, fmt.Errorf("rtclink: STUN server %q: %w", server, errors.Join(append(errs, ctx.Err())...))
	}
	return seen, nil
}

// mapped asks one address of a server.
func mapped(ctx context.Context, network string, local *net.UDPAddr, server netip.AddrPort) (at netip.AddrPort, err error) {
	bind := *local
	if bind.IP.IsUnspecified() {
		bind.IP = nil
	}
	conn, err := net.ListenUDP(network, &bind)
	if err != nil {
		return at, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	request, err := stun.Build(stun.TransactionID, stun.BindingRequest, stun.Fingerprint)
	if err != nil {
		return at, err
	}
	b := make([]byte, 1500)
	for range askAtMost {
		if _, err = conn.WriteToUDPAddrPort(request.Raw, server); err != nil {
			return at, err
		}
		for until := time.Now().Add(askEvery); ; {
			if ctx.Err() != nil {
				return at, ctx.Err()
			}
			_ = conn.SetReadDeadline(until)
			n, from, readErr := conn.ReadFromUDPAddrPort(b)
			if err = readErr; err != nil {
				break // in time nothing came: asked again
			}
			if netip.AddrPortFrom(from.Addr().Unmap(), from.Port()) != server {
				continue
			}
			if at, err = answerTo(request, b[:n]); err == nil {
				return at, nil
			}
		}
	}
	return at, fmt.Errorf("%s does not answer: %w", server, err)
}

// answerTo reads where a request came from.
func answerTo(request *stun.Message, b []byte) (at netip.AddrPort, err error) {
	m := &stun.Message{Raw: b}
	if err := m.Decode(); err != nil {
		return at, err
	}
	if m.TransactionID != request.TransactionID || m.Type != stun.BindingSuccess {
		return at, errors.New("not the answer to what was asked")
	}
	var mapped stun.XORMappedAddress
	if err := mapped.GetFrom(m); err != nil {
		return at, err
	}
	a, ok := netip.AddrFromSlice(mapped.IP)
	if !ok {
		return at, errors.New("no address in the answer")
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(mapped.Port)), nil
}
