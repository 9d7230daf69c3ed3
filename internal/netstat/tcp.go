package netstat

// Sizes of headers and of what Ethernet adds to a packet, bytes.
const (
	headersV4   = 40
	headersV6   = 60
	timestamps  = 12
	ethernet    = 38 // preamble 8, header 14, check sequence 4, gap 12
	vlanTag     = 4
	optionStamp = 1 // bit of TCPInfo.Options: timestamps are in use
)

// TCPInfo is one look at the server's end of a connection, in the units of the kernel's TCP_INFO: bytes and microseconds. Its JSON
// is that of ndt7 and of spec/probe.md. What the system does not tell is 0.
//
// Large: a field for each value of the kernel that is told or used.
type TCPInfo struct {
	ElapsedTime   int64 // since the test began
	BusyTime      int64
	BytesAcked    int64
	BytesReceived int64
	BytesSent     int64 // retransmissions among them
	BytesRetrans  int64
	MinRTT        int64
	RTT           int64 // smoothed
	RTTVar        int64
	RWndLimited   int64
	SndBufLimited int64
	SndMSS        int64
	RcvMSS        int64
	PMTU          int64 // of the route's cache
	Options       int64
	Unacked       int64 // packets
	RcvRTT        int64 // the receiver's estimate
	RcvSpace      int64
	SndCwnd       int64 // packets
	SndWnd        int64
	DeliveryRate  int64 // bytes per second
}

// Link is what carries a connection.
type Link struct {
	Rate       float64 // bit/s on the wire
	MTU        int64   // of the path
	V6         bool
	VLAN       bool
	Timestamps bool // of TCP
}

// MaxThroughput is the largest possible throughput of TCP payload, bit/s.
func (l Link) MaxThroughput() float64 {
	payload := l.MTU - headers(l.V6, l.Timestamps)
	wire := l.MTU + ethernet
	if l.VLAN {
		wire += vlanTag
	}
	if payload <= 0 {
		return 0
	}
	return l.Rate * float64(payload) / float64(wire)
}

func headers(v6, stamped bool) int64 {
	n := int64(headersV4)
	if v6 {
		n = headersV6
	}
	if stamped {
		n += timestamps
	}
	return n
}

// Rate is bytes by microseconds in bit/s; 0 of no time.
func Rate(bytes, us int64) float64 {
	if us <= 0 {
		return 0
	}
	return float64(bytes) * 8e6 / float64(us)
}

// Transfer is bytes of payload that went over a link in a time.
type Transfer struct {
	Bytes   int64
	Elapsed int64 // µs
	Link    Link
}

// Ideal is RFC 6349's ideal transfer time, in microseconds; 0 if the link carries nothing.
func (t Transfer) Ideal() float64 {
	most := t.Link.MaxThroughput()
	if most <= 0 {
		return 0
	}
	return float64(t.Bytes) * 8e6 / most
}

// TimeRatio is RFC 6349's transfer time ratio: actual by ideal time. ok is false where there is none.
func (t Transfer) TimeRatio() (ratio float64, ok bool) {
	ideal := t.Ideal()
	if ideal <= 0 || t.Elapsed <= 0 {
		return 0, false
	}
	return float64(t.Elapsed) / ideal, true
}

// ThroughputRatio is throughput by the largest possible, the inverse of TimeRatio.
func (t Transfer) ThroughputRatio() (ratio float64, ok bool) {
	if ratio, ok = t.TimeRatio(); !ok {
		return 0, false
	}
	return 1 / ratio, true
}

// Efficiency is RFC 6349's TCP efficiency in percent, of bytes sent, retransmissions among them.
func Efficiency(sent, retransmitted int64) (percent float64, ok bool) {
	if sent <= 0 || retransmitted < 0 || retransmitted > sent {
		return 0, false
	}
	return 100 * float64(sent-retransmitted) / float64(sent), true
}

// Delay is RFC 6349's buffer delay in percent, of an average and a baseline round-trip time in microseconds.
func Delay(average float64, baseline int64) (percent float64, ok bool) {
	if baseline <= 0 {
		return 0, false
	}
	return 100 * (average - float64(baseline)) / float64(baseline), true
}

// MTU is the largest packet of the path, from the largest segment; 0 where the system tells none.
func (i TCPInfo) MTU(v6 bool) int64 {
	if i.SndMSS <= 0 {
		return 0
	}
	return i.SndMSS + headers(v6, i.Options&optionStamp != 0)
}

// rtt is the round-trip time that one look saw: the sender's for a download, the receiver's for an upload.
func (i TCPInfo) rtt(d Direction) int64 {
	if d == Up {
		return i.RcvRTT
	}
	return i.RTT
}
