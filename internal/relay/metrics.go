package relay

import (
	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/metric"
)

// The outcome of a request that carries a username.
const (
	authKnown     = "known" // the password is checked by what calls
	authExpired   = "expired"
	authMalformed = "malformed"
	authUnknown   = "unknown-secret"
)

// How a request for an allocation was answered.
const (
	allocationGranted  = "granted"
	allocationUser     = "user-quota"
	allocationAddress  = "address-quota"
	allocationTotal    = "total-quota"
	allocationDraining = "draining"
)

// Why a packet was not relayed.
const (
	droppedAllocation = "allocation-rate"
	droppedTotal      = "total-rate"
	droppedPeer       = "peer"
)

// Why a request got no reply.
const (
	unansweredAddress    = "address"    // the address has had too many
	unansweredIncomplete = "incomplete" // no client sends it
)

// Which way packets are relayed.
const (
	toPeer   = "to-peer"
	toClient = "to-client"
)

var (
	directions = []string{toPeer, toClient}
	drops      = []string{droppedAllocation, droppedTotal, droppedPeer}
)

// The metrics of a relay (spec/metrics.md).
var (
	mAllocations = &metric.Def{Name: "leeway_turn_allocations", Help: "Open allocations", Kind: metric.Gauge}
	mRequested   = &metric.Def{Name: "leeway_turn_allocations_total", Help: "Allocations asked for", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "outcome", Values: []string{allocationGranted, allocationUser, allocationAddress, allocationTotal, allocationDraining}}}}
	mRequests = &metric.Def{Name: "leeway_turn_requests_total", Help: "Requests with a username, by what that was", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "outcome", Values: []string{authKnown, authExpired, authMalformed, authUnknown}}}}
	mUnanswered = &metric.Def{Name: "leeway_turn_unanswered_requests_total", Help: "Requests over UDP without a good password that got no reply", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "reason", Values: []string{unansweredAddress, unansweredIncomplete}}}}
	mRefusedPeers = &metric.Def{Name: "leeway_turn_refused_peers_total", Help: "Permissions refused for where the peer is", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "class", Values: access.PeerClasses}}}
	mBytes = &metric.Def{Name: "leeway_turn_relayed_bytes_total", Help: "Bytes of data relayed", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "direction", Values: directions}}}
	mPackets = &metric.Def{Name: "leeway_turn_relayed_packets_total", Help: "Packets of data relayed", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "direction", Values: directions}}}
	mDropped = &metric.Def{Name: "leeway_turn_dropped_packets_total", Help: "Packets not relayed", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "reason", Values: drops}}}
	mConnections = &metric.Def{Name: "leeway_turn_connections", Help: "Open connections of clients", Kind: metric.Gauge,
		Labels: []metric.Label{{Name: "transport", Values: []string{"tcp", "tls"}}}}
	mRefused = &metric.Def{Name: "leeway_turn_refused_connections_total", Help: "Connections of clients refused", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "reason", Values: []string{"address", "total", "draining", "proxy"}}}}
	mSocket = &metric.Def{Name: "leeway_turn_socket_buffer_bytes", Help: "Size of a client socket's buffers that the kernel gave", Kind: metric.Gauge,
		Labels: []metric.Label{{Name: "direction", Values: []string{"read", "write"}}}}
)

// Metrics lists what a relay counts.
func Metrics() []*metric.Def {
	return []*metric.Def{
		mAllocations, mRequested, mRequests, mUnanswered, mRefusedPeers, mBytes, mPackets, mDropped, mConnections, mRefused, mSocket,
	}
}
