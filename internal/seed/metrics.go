package seed

import (
	"slices"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/stream"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

func values[T ~string](set []T) []string {
	out := make([]string, len(set))
	for i, v := range set {
		out[i] = string(v)
	}
	return out
}

// What came of a playlist.
const (
	playlistLoaded = "loaded"
	playlistFailed = "failed"
)

// The metrics of a seed (spec/metrics.md).
var (
	tierLabel = metric.Label{Name: "tier", Values: []string{"memory", "disk"}}

	mLinks     = &metric.Def{Name: "leeway_seed_links", Help: "Open links", Kind: metric.Gauge}
	mHalfOpen  = &metric.Def{Name: "leeway_seed_half_open_links", Help: "Links on their way: offers that were answered", Kind: metric.Gauge}
	mDisplaced = &metric.Def{Name: "leeway_seed_displaced_links_total", Help: "Links that lost their place to another, by why", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "reason", Values: []string{displacedHalfOpen, displacedIdle, displacedShare}}}}
	mReached = &metric.Def{Name: "leeway_seed_reached", Help: "1 once a packet from outside has come to the announced address", Kind: metric.Gauge}
	mTitles  = &metric.Def{Name: "leeway_seed_titles", Help: "Titles served", Kind: metric.Gauge}
	mResting = &metric.Def{Name: "leeway_seed_resting_titles", Help: "Titles for which nothing is fetched for a while, since peers cost more than they save", Kind: metric.Gauge,
		Labels: []metric.Label{metric.Site()}}
	mRests = &metric.Def{Name: "leeway_seed_rests_total", Help: "Times that a title began to rest, since peers cost more than they save", Kind: metric.Counter,
		Labels: []metric.Label{metric.Site()}}
	mSent = &metric.Def{Name: "leeway_seed_sent_bytes_total", Help: "Piece bytes sent", Kind: metric.Counter,
		Labels: []metric.Label{metric.Site(), {Name: "path", Values: []string{"direct", "relay"}}}}
	mOriginBytes = &metric.Def{Name: "leeway_seed_origin_bytes_total", Help: "Bytes fetched from origins", Kind: metric.Counter,
		Labels: []metric.Label{metric.Site()}}
	mOriginRequests = &metric.Def{Name: "leeway_seed_origin_requests_total", Help: "Requests to origins", Kind: metric.Counter,
		Labels: []metric.Label{metric.Site(), {Name: "outcome", Values: values(Outcomes)}}}
	mCertificates = &metric.Def{Name: "leeway_seed_certificates_total", Help: "Certificates issued or refused", Kind: metric.Counter,
		Labels: []metric.Label{metric.Site(), {Name: "outcome", Values: []string{"issued", "refused"}}}}
	mFresh = &metric.Def{Name: "leeway_seed_live_certificate_seconds", Kind: metric.Histogram, Labels: []metric.Label{metric.Site()},
		Help:    "From the publication of a segment at the edge of a live stream, by the stream's clock, to its certificate",
		Buckets: []float64{0.1, 0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 10, 20}}
	mHeld = &metric.Def{Name: "leeway_seed_live_held_seconds", Kind: metric.Histogram, Labels: []metric.Label{metric.Site()},
		Help:    "From the publication of a segment of a live stream, by the stream's clock, until a linked viewer said that it holds all of it",
		Buckets: mFresh.Buckets}
	mContradictions = &metric.Def{Name: "leeway_seed_contradictions_total", Help: "Origin bytes that differ from what is certified still, by the seed or by a packager", Kind: metric.Counter,
		Labels: []metric.Label{metric.Site()}}
	mRequests = &metric.Def{Name: "leeway_seed_requests_total", Help: "Requests for pieces by how they ended", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "outcome", Values: []string{"served", "rejected", "canceled"}}}}
	mStoreBytes = &metric.Def{Name: "leeway_seed_store_bytes", Help: "Bytes held in the piece store", Kind: metric.Gauge,
		Labels: []metric.Label{tierLabel}}
	mEvictions = &metric.Def{Name: "leeway_seed_store_evictions_total", Help: "Segments that made room for others", Kind: metric.Counter,
		Labels: []metric.Label{tierLabel}}
	mDiskRead = &metric.Def{Name: "leeway_seed_disk_read_bytes_total", Help: "Bytes of the store's files that were read because a session asked",
		Kind: metric.Counter}
	mCorrupt = &metric.Def{Name: "leeway_seed_store_corrupt_total", Help: "Files of the store that did not verify and were dropped",
		Kind: metric.Counter}
	mPlaylists = &metric.Def{Name: "leeway_seed_playlists_total", Help: "Playlists loaded from origins", Kind: metric.Counter,
		Labels: []metric.Label{metric.Site(), {Name: "outcome", Values: []string{playlistLoaded, playlistFailed}}}}
	mLists = &metric.Def{Name: "leeway_seed_signed_lists_total", Help: "Lists of packagers' certificates asked of origins, by what came", Kind: metric.Counter,
		Labels: []metric.Label{metric.Site(), {Name: "outcome", Values: []string{listLoaded, listMissing, listMalformed, listUnpaid, listOverweight, listFailed}}}}
	mPlaylistRefusals = &metric.Def{Name: "leeway_seed_playlist_refusals_total", Help: "Playlists not loaded because a budget was spent, by whose", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "scope", Values: []string{tollSite, tollSubnet, tollSubject, tollSession}}}}
	mIndexBytes     = &metric.Def{Name: "leeway_seed_index_bytes", Help: "Memory taken by what playlists list", Kind: metric.Gauge}
	mIndexEvictions = &metric.Def{Name: "leeway_seed_index_evictions_total", Help: "Indexes of manifests that made room for others", Kind: metric.Counter}
	mRefusals       = &metric.Def{Name: "leeway_seed_budget_refusals_total", Help: "Requests refused because a budget was spent", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "scope", Values: []string{"seed", "site", "session"}}}}
	mSocket = &metric.Def{Name: "leeway_seed_socket_buffer_bytes", Help: "Size of the UDP socket's buffers that the kernel gave",
		Kind: metric.Gauge, Labels: []metric.Label{{Name: "direction", Values: []string{"read", "write"}}}}
	mSignals = &metric.Def{Name: "leeway_seed_signals_total", Help: "Signals for viewers", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "outcome", Values: stream.Outcomes}}}
	mCandidates = &metric.Def{Name: "leeway_seed_refused_candidates_total", Help: "Candidates of viewers that are not checked", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "reason", Values: slices.Concat(access.PeerClasses, []string{"number", "ports"})}}}
	mChecks = &metric.Def{Name: "leeway_seed_dropped_checks_total", Help: "Connectivity checks not sent, for the budget that is spent", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "budget", Values: []string{"link", "address", "total"}}}}
	mClosed = &metric.Def{Name: "leeway_seed_links_closed_total", Help: "Links ended, by reason", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "reason", Values: values(peer.CloseReasons)}}}
	mOverruns = &metric.Def{Name: "leeway_seed_overruns_total", Help: "Links ended because the viewer said too much, by what of", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "limit", Values: values(peer.Limits)}}}
)

// The metrics of low-latency streams (spec/parts.md).
var (
	mPartStreams = &metric.Def{Name: "leeway_seed_part_streams", Help: "Low-latency streams whose parts are followed, since viewers follow them", Kind: metric.Gauge}
	mParts       = &metric.Def{Name: "leeway_seed_parts_total", Help: "Parts of followed low-latency streams, and chunks of DASH, by what came of them", Kind: metric.Counter,
		Labels: []metric.Label{metric.Site(), {Name: "outcome", Values: []string{partSigned, partUnpaid, partFailed, partLate, partIdle}}}}
	mPartLag = &metric.Def{Name: "leeway_seed_part_certificate_seconds", Kind: metric.Histogram, Labels: []metric.Label{metric.Site()},
		Help:    "From the playlist that lists a part, or the last byte of a chunk, to its certificate",
		Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5}}
	mPartShed = &metric.Def{Name: "leeway_seed_part_shed_bytes_total", Help: "Bytes of parts that were not pushed, since the viewer did not take what was pushed before", Kind: metric.Counter}
)

// The metrics of the background lane: gauges and counters of the one controller that a seed has.
var (
	mLane = &metric.Def{Name: "leeway_seed_lane_bytes_total", Help: "Piece bytes sent, by the lane of their request", Kind: metric.Counter,
		Labels: []metric.Label{{Name: "lane", Values: metric.Lanes}}}
	mPromotions = &metric.Def{Name: "leeway_seed_promotions_total", Help: "Background requests that became foreground", Kind: metric.Counter}
	mQueuing    = &metric.Def{Name: "leeway_seed_queuing_delay_seconds", Help: "Queue that the seed measures, once a second while it sends in the background",
		Kind: metric.Histogram, Buckets: []float64{0.001, 0.003, 0.01, 0.02, 0.04, 0.06, 0.1, 0.2, 0.5, 1}}
	mBase      = &metric.Def{Name: "leeway_seed_base_delay_seconds", Help: "Least round trip, the median over its links", Kind: metric.Gauge}
	mTarget    = &metric.Def{Name: "leeway_seed_target_delay_seconds", Help: "Queue that the seed allows its background lane", Kind: metric.Gauge}
	mWindow    = &metric.Def{Name: "leeway_seed_window_bytes", Help: "Window of the background lane", Kind: metric.Gauge}
	mPacing    = &metric.Def{Name: "leeway_seed_pacing_second_bytes", Help: "Bytes that the background lane lets go in a second", Kind: metric.Gauge}
	mYields    = &metric.Def{Name: "leeway_seed_yields_total", Help: "Times that the window fell to the floor for delay", Kind: metric.Counter}
	mSlowdowns = &metric.Def{Name: "leeway_seed_slowdowns_total", Help: "Slowdowns, in which the own queue drains", Kind: metric.Counter}
)

// Where a segment came from that a viewer wanted.
const (
	fetchedCache   = "cache"
	fetchedSibling = "sibling"
	fetchedOrigin  = "origin"
)

// What a seed alone counts, too, as a fleet of one.
var (
	mFleet   = &metric.Def{Name: "leeway_seed_fleet_size", Help: "Seeds of the fleet that live and can be asked, this one among them", Kind: metric.Gauge}
	mFetches = &metric.Def{Name: "leeway_seed_fetches_total", Help: "Certified segments had for viewers, siblings and the warm-up, by where from", Kind: metric.Counter,
		Labels: []metric.Label{metric.Site(), {Name: "from", Values: []string{fetchedOrigin, fetchedSibling, fetchedCache}}}}
	mWarm = &metric.Def{Name: "leeway_seed_warm", Help: "1 once the seed has what siblings' viewers want most", Kind: metric.Gauge}
)

// measured is what the controller said when it was last looked at.
type measured struct {
	sent  int64
	stats ledbat.Stats
}

// take counts what the background lane did since the last time.
func (last *measured) take(lane *background.Sender, m metric.Sink) {
	sent, _ := lane.Totals()
	now := lane.Stats()
	if sent > last.sent {
		m.Observe(mQueuing, float64(now.Queuing)/1e6)
	}
	m.Set(mBase, float64(now.Base)/1e6)
	m.Set(mTarget, float64(now.Target)/1e6)
	m.Set(mWindow, float64(now.Window))
	m.Set(mPacing, float64(now.PacingRate))
	m.Add(mYields, float64(now.Yields-last.stats.Yields))
	m.Add(mSlowdowns, float64(now.Slowdowns-last.stats.Slowdowns))
	last.sent, last.stats = sent, now
}

// RefusedCandidates counts what a guarded host refuses (rtclink.Guard).
func RefusedCandidates(sink metric.Sink) func(reason string) {
	return func(reason string) { sink.Add(mCandidates, 1, reason) }
}

// DroppedChecks counts what it does not send.
func DroppedChecks(sink metric.Sink) func(budget string) {
	return func(budget string) { sink.Add(mChecks, 1, budget) }
}

// Metrics lists what a seed counts.
func Metrics() []*metric.Def {
	return []*metric.Def{
		mLinks, mHalfOpen, mDisplaced, mReached, mTitles, mResting, mRests, mSent, mOriginBytes, mOriginRequests, mCertificates, mFresh, mHeld, mContradictions, mRequests,
		mPlaylists, mLists, mPlaylistRefusals, mIndexBytes, mIndexEvictions, mStoreBytes, mEvictions, mDiskRead, mCorrupt, mRefusals, mSocket, mSignals, mCandidates, mChecks, mClosed, mOverruns,
		mFleet, mFetches, mWarm,
		mPartStreams, mParts, mPartLag, mPartShed,
		mLane, mPromotions, mQueuing, mBase, mTarget, mWindow, mPacing, mYields, mSlowdowns,
	}
}
