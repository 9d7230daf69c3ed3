package tcpinfo

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/leeway-video/leeway/internal/netstat"
)

// look asks the kernel. Fields that an older kernel does not know are 0.
func look(raw syscall.RawConn) (info netstat.TCPInfo, ok bool) {
	var i *unix.TCPInfo
	var err error
	if raw.Control(func(fd uintptr) { i, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }) != nil || err != nil {
		return netstat.TCPInfo{}, false
	}
	return netstat.TCPInfo{
		BusyTime: int64(i.Busy_time), BytesAcked: int64(i.Bytes_acked), BytesReceived: int64(i.Bytes_received), BytesSent: int64(i.Bytes_sent), BytesRetrans: int64(i.Bytes_retrans),
		MinRTT: minRTT(i.Min_rtt), RTT: int64(i.Rtt), RTTVar: int64(i.Rttvar), RWndLimited: int64(i.Rwnd_limited), SndBufLimited: int64(i.Sndbuf_limited),
		SndMSS: int64(i.Snd_mss), RcvMSS: int64(i.Rcv_mss), PMTU: int64(i.Pmtu), Options: int64(i.Options), Unacked: int64(i.Unacked),
		RcvRTT: int64(i.Rcv_rtt), RcvSpace: int64(i.Rcv_space), SndCwnd: int64(i.Snd_cwnd), SndWnd: int64(i.Snd_wnd), DeliveryRate: int64(i.Delivery_rate),
	}, true
}

// minRTT is 0 where the kernel has seen no round trip: it says all ones then.
func minRTT(us uint32) int64 {
	if us == ^uint32(0) {
		return 0
	}
	return int64(us)
}
