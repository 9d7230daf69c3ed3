package netcheck

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/qualitylink"
)

// MaxSTUN is how many STUN servers a check asks.
const MaxSTUN = 4

const (
	maxHost    = 255
	stunTime   = 2 * time.Second // for all answers of a family
	stunPacket = 1500
)

// stunAgain is how long after the first request those are repeated that have no answer.
var stunAgain = []time.Duration{0, 300 * time.Millisecond, 900 * time.Millisecond}

// ParseSTUN reads HOST:PORT. The host may be empty.
func ParseSTUN(text string) (host string, port uint16, err error) {
	host, number, err := net.SplitHostPort(text)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || n == 0 || len(host) > maxHost {
		return "", 0, fmt.Errorf("%q is no HOST:PORT", text)
	}
	return host, uint16(n), nil
}

// Reachability is whether a client has UDP, and what its NAT does with it (spec/probe.md, "Reachability").
type Reachability struct {
	Candidates []string `json:"candidates"` // host, srflx
	IPv4       string   `json:"ipv4"`       // as netstat.Mapping says
	IPv6       string   `json:"ipv6"`
}

// reach asks the STUN servers that the server names. There is nothing to fail: what has no answer is the result.
func (c *check) reach(ctx context.Context, r *Results) error {
	if len(c.server.stun) == 0 {
		return nil
	}
	four, six := make(chan heard, 1), make(chan heard, 1)
	go func() { four <- c.ask(ctx, "4") }()
	go func() { six <- c.ask(ctx, "6") }()
	v4, v6 := <-four, <-six
	if err := context.Cause(ctx); err != nil {
		return err
	}
	got := &Reachability{Candidates: []string{}, IPv4: v4.mapping(), IPv6: v6.mapping()}
	if v4.own || v6.own {
		got.Candidates = append(got.Candidates, "host")
	}
	if len(v4.answered)+len(v6.answered) > 0 {
		got.Candidates = append(got.Candidates, "srflx")
	}
	r.Reachability = got
	return nil
}

// heard is what the servers of one family have answered.
type heard struct {
	own        bool // this machine has an address that the servers are reached by
	answered   []string
	mapped     []netip.AddrPort
	translated bool
}

func (h *heard) mapping() string { return netstat.Mapping(h.answered, len(h.mapped), &h.translated) }

// stunRequest is a server that has not answered yet.
type stunRequest struct {
	to netip.AddrPort
	*qualitylink.Binding
}

// ask sends binding requests of one family, "4" or "6", from one socket.
func (c *check) ask(ctx context.Context, family string) (h heard) {
	ctx, cancel := context.WithTimeout(ctx, stunTime)
	defer cancel()
	open := c.requests(ctx, "ip"+family)
	if len(open) == 0 {
		return h
	}
	own := sourceTo(ctx, "udp"+family, open[0].to)
	if !own.IsValid() {
		return h
	}
	h.own = true
	socket, err := net.ListenUDP("udp"+family, nil)
	if err != nil {
		return h
	}
	defer socket.Close()
	stop := context.AfterFunc(ctx, func() { _ = socket.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	began, round := time.Now(), 0
	for packet := make([]byte, stunPacket); len(open) > 0 && ctx.Err() == nil; {
		if round < len(stunAgain) && time.Since(began) >= stunAgain[round] {
			for _, q := range open {
				_, _ = socket.WriteToUDPAddrPort(q.Request, q.to) // what is lost is sent again, or has no answer
			}
			round++
		}
		until := began.Add(stunTime)
		if round < len(stunAgain) {
			until = began.Add(stunAgain[round])
		}
		_ = socket.SetReadDeadline(until)
		if ctx.Err() != nil {
			break // the deadline above may have undone that of the end
		}
		n, from, err := socket.ReadFromUDPAddrPort(packet)
		if err == nil {
			open = h.take(open, packet[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port()))
		}
	}
	port := uint16(socket.LocalAddr().(*net.UDPAddr).Port)
	h.translated = slices.ContainsFunc(h.mapped, func(m netip.AddrPort) bool { return m != netip.AddrPortFrom(own, port) })
	return h
}

// requests are those to the addresses of the servers in one family, each once.
func (c *check) requests(ctx context.Context, network string) (all []stunRequest) {
	for _, text := range c.server.stun[:min(len(c.server.stun), MaxSTUN)] {
		host, port, err := ParseSTUN(text)
		if err != nil {
			continue
		}
		if host == "" {
			host = c.server.base.Hostname()
		}
		found, err := net.DefaultResolver.LookupNetIP(ctx, network, host)
		if err != nil || len(found) == 0 {
			continue
		}
		to := netip.AddrPortFrom(found[0].Unmap(), port)
		if slices.ContainsFunc(all, func(q stunRequest) bool { return q.to == to }) {
			continue
		}
		if b, err := qualitylink.NewBinding(); err == nil {
			all = append(all, stunRequest{to, b})
		}
	}
	return all
}

// sourceTo is this machine's address towards another; it sends nothing.
func sourceTo(ctx context.Context, network string, to netip.AddrPort) netip.Addr {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, to.String())
	if err != nil {
		return netip.Addr{}
	}
	defer conn.Close()
	at, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

// take looks for the answer to an open request in a packet, and returns those that are still open.
func (h *heard) take(open []stunRequest, packet []byte, from netip.AddrPort) []stunRequest {
	i := slices.IndexFunc(open, func(q stunRequest) bool { return q.to == from })
	if i < 0 {
		return open
	}
	at, ok := open[i].Mapped(packet)
	if !ok {
		return open
	}
	h.answered = append(h.answered, from.Addr().String())
	if !slices.Contains(h.mapped, at) {
		h.mapped = append(h.mapped, at)
	}
	return slices.Delete(open, i, i+1)
}
