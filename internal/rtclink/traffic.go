package rtclink

import "sync/atomic"

// Traffic counts the packets of sockets and their UDP payload.
type Traffic struct {
	SentPackets, SentBytes         int64
	ReceivedPackets, ReceivedBytes int64
}

// counter counts one direction of a socket.
type counter struct{ packets, bytes atomic.Int64 }

func (c *counter) add(packets, bytes int) {
	c.packets.Add(int64(packets))
	c.bytes.Add(int64(bytes))
}

func (t *Traffic) add(s *socket) {
	t.SentPackets += s.mux.out.sent.packets.Load()
	t.SentBytes += s.mux.out.sent.bytes.Load()
	t.ReceivedPackets += s.mux.received.packets.Load()
	t.ReceivedBytes += s.mux.received.bytes.Load()
}

// Traffic is what the host's socket has carried, or with SocketPerLink the sockets of the links that it has now.
func (h *Host) Traffic() Traffic {
	var t Traffic
	if h.socket != nil {
		t.add(h.socket)
		return t
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.links {
		t.add(l.own)
	}
	return t
}
