package seed

import (
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

func values[T ~string](set []T) []string {
	out := make([]string, len(set))
	for i, v := range set {
		out[i] = string(v)
	}
	return out
}

// The metrics of a seed (spec/metrics.md).
var (
	tierLabel = metric.Label{Name: "tier", Values: []string{"memory", "disk"}}

	mLinks  = &metric.Def{Name: "leeway_seed_links", Help: "Open links", Kind: metric.Gauge}
	mTitles = &metric.Def{Name: "leeway_seed_titles", Help: "Titles served", Kind: metric.Gauge}
	mSent   = &metric.Def{Name: "leeway_seed_sent_bytes_total", Help: "Piece bytes sent", Kind: metric.Counter,
		Labels: []metric.Label{metric.Site(), {Name: "path", Values: []string{"direct", "relay"}}}}
	mOriginBytes = &metric.Def{Name: "leeway_seed_origin_bytes_total", Help: "Bytes fetched from origins", Kind: metric.Counter,
		Labels: []metric.Label{metric.Site()}}
	mOriginRequests = &metric.Def{Name: "leeway_seed_origin_requests_total", Help: "Requests to origins", Kind: metric.Counter,
		Labels: []metric.Label{metric.Site(), {Name: "outcome", Values: values(Outcomes)}}}
	mCertificates = &metric.Def{Name: "leeway_seed_certificates_total", Help: "Certificates issued or refused", Kind: metric.Counter,
		Labels: []metric.Label{metric.Site(), {Name: "outcome", Values: []string{"issued", "refused"}}}}
	mRequests = &metric.Def{Name: "leeway_seed_requests_total", Help: "Requests for pieces by how they ended", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "outcome", Values: []string{"served", "rejected", "canceled"}}}}
	mStoreBytes = &metric.Def{Name: "leeway_seed_store_bytes", Help: "Bytes held in the piece store", Kind: metric.Gauge,
		Labels: []metric.Label{tierLabel}}
	mEvictions = &metric.Def{Name: "leeway_seed_store_evictions_total", Help: "Segments that made room for others", Kind: metric.Counter,
		Labels: []metric.Label{tierLabel}}
	mCorrupt = &metric.Def{Name: "leeway_seed_store_corrupt_total", Help: "Files of the store that did not verify and were dropped",
		Kind: metric.Counter}
	mRefusals = &metric.Def{Name: "leeway_seed_budget_refusals_total", Help: "Requests refused because a budget was spent", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "scope", Values: []string{"seed", "site", "session"}}}}
	mSocket = &metric.Def{Name: "leeway_seed_socket_buffer_bytes", Help: "Size of the UDP socket's buffers that the kernel gave",
		Kind: metric.Gauge, Labels: []metric.Label{{Name: "direction", Values: []string{"read", "write"}}}}
	mClosed = &metric.Def{Name: "leeway_seed_links_closed_total", Help: "Links ended, by reason", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "reason", Values: values(peer.CloseReasons)}}}
)

// Metrics lists what a seed counts.
func Metrics() []*metric.Def {
	return []*metric.Def{
		mLinks, mTitles, mSent, mOriginBytes, mOriginRequests, mCertificates, mRequests,
		mStoreBytes, mEvictions, mCorrupt, mRefusals, mSocket, mClosed,
	}
}
