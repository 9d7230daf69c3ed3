package tracker

import (
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/stream"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// rejections is the closed set of reasons for refusing a socket.
var rejections = []string{"origin", "version", "rate", "total", "slow", "oversized", "hello-timeout", "token", "half-open", "proxy"}

// messageTypes are the protocol's types and what is counted for the rest.
var messageTypes = append(append([]string(nil), signal.Types...), "unknown")

func def(kind metric.Kind, name, help string, labels ...metric.Label) *metric.Def {
	return &metric.Def{Name: name, Help: help, Kind: kind, Labels: labels}
}

// spread is a distribution over a site's viewers.
func spread(name, help string, buckets ...float64) *metric.Def {
	return &metric.Def{Name: name, Help: help, Kind: metric.Histogram, Labels: []metric.Label{site}, Buckets: buckets}
}

func label(name string, values []string) metric.Label {
	return metric.Label{Name: name, Values: values}
}

var (
	site    = metric.Site()
	source  = label("source", metric.Sources)
	path    = label("path", metric.Paths)
	variant = label("variant", metric.Variants)

	defSessions      = def(metric.Gauge, "leeway_tracker_sessions", "Open native sessions", site)
	defSwarms        = def(metric.Gauge, "leeway_tracker_swarms", "Swarms with a home here")
	defMembers       = def(metric.Gauge, "leeway_tracker_members", "Members of those swarms", label("role", metric.Roles))
	defViewers       = def(metric.Gauge, "leeway_tracker_viewers", "Viewers of titles, by what they are to the swarm", site, label("viewer_role", signal.Roles))
	defMessages      = def(metric.Counter, "leeway_tracker_messages_total", "Protocol messages", label("type", messageTypes), label("direction", []string{"in", "out"}))
	defSignaling     = def(metric.Counter, "leeway_tracker_message_bytes_total", "Bytes of protocol messages, without those of the sockets below", label("direction", []string{"in", "out"}))
	defErrors        = def(metric.Counter, "leeway_tracker_errors_total", "Error messages sent", label("code", signal.Codes))
	defRejected      = def(metric.Counter, "leeway_tracker_rejected_total", "Handshakes and sockets refused", label("reason", rejections))
	defTokens        = def(metric.Counter, "leeway_tracker_tokens_total", "Join tokens, by what became of them", label("outcome", tokenOutcomes()))
	defShed          = def(metric.Counter, "leeway_tracker_shed_total", "Sessions sent to other trackers, which have fewer")
	defIntroductions = def(metric.Counter, "leeway_tracker_introductions_total", "Peers introduced", label("role", metric.Roles))
	defLearned       = def(metric.Counter, "leeway_tracker_learned_viewers_total", "Viewers that sessions got to know, by introductions and by offers")
	defUnlearned     = def(metric.Counter, "leeway_tracker_learned_refused_total", "Viewers that a session asked for, or that offered to it, and that it did not get to know, for it knew so many by then", label("scope", learnerScopes()))
	defSignals       = def(metric.Counter, "leeway_tracker_signals_total", "Signals relayed", label("kind", signal.Kinds))
	defSignalRefused = def(metric.Counter, "leeway_tracker_signals_refused_total", "Signals that were not passed on, by the allowance that they exceeded", label("reason", signalRefusals))
	defDeliveries    = def(metric.Counter, "leeway_tracker_deliveries_total", "Signals and introductions for sessions of other trackers, and signals for seeds", label("outcome", stream.Outcomes))
	defSeedRefused   = def(metric.Counter, "leeway_tracker_seed_messages_refused_total", "Messages of seeds on the bus that were dropped", label("reason", seedRefusals))
	defMoves         = def(metric.Counter, "leeway_tracker_moves_total", "Memberships registered with another home", label("reason", []string{"home", "unknown", "split", "token", "switch"}))
	defTrackers      = def(metric.Gauge, "leeway_tracker_live_trackers", "Trackers that beat, this one among them")
	defRevocations   = def(metric.Gauge, "leeway_tracker_revocations", "Revocations in force", label("kind", []string{"key", "purge", "tombstone"}))
	defOff           = def(metric.Gauge, "leeway_tracker_delivery_off", "1 while peer delivery of the site is off for this reason", site, label("reason", offReasons))
	defUnshared      = def(metric.Counter, "leeway_tracker_unshared_names_total", "Segments and titles whose names have a query that is probably one viewer's", site, label("of", []string{ofSegment, ofTitle}))
	defClamped       = def(metric.Counter, "leeway_tracker_clamped_total", "Figures of viewers cut to what is possible")
	defReports       = def(metric.Counter, "leeway_tracker_reports_total", "Viewers' reports of peers that they had to ban", label("outcome", reportOutcomes()))
	defBans          = def(metric.Counter, "leeway_tracker_bans_total", "Peers that are introduced to no other for a while, since viewers of several subnets reported them")
	defManifests     = def(metric.Counter, "leeway_tracker_manifest_changes_total", "Times that seeds were led to another manifest of a title, which more subnets name")
	defHandle        = &metric.Def{
		Name: "leeway_tracker_handle_seconds", Help: "Time to handle one message", Kind: metric.Histogram,
		Labels:  []metric.Label{label("type", messageTypes)},
		Buckets: []float64{0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1},
	}

	defReceived   = def(metric.Counter, "leeway_viewer_received_bytes_total", "Bytes that viewers received, by their own reports", site, source, path, variant)
	defCredited   = def(metric.Counter, "leeway_viewer_credited_bytes_total", "Bytes from viewer to viewer that both of them report", site, path)
	defUploaded   = def(metric.Counter, "leeway_viewer_uploaded_bytes_total", "Bytes that viewers sent to others", site, path)
	defSegments   = def(metric.Counter, "leeway_viewer_segments_total", "Segments by where most of them came from", site, source, variant)
	defParts      = def(metric.Counter, "leeway_viewer_parts_total", "Parts of low-latency streams by where most of them came from", site, source, variant)
	defPartHops   = def(metric.Counter, "leeway_viewer_part_hops_total", "Hops from the source to a viewer in the deepest of its trees, added up over parts", site)
	defPartLost   = def(metric.Counter, "leeway_viewer_part_parents_lost_total", "Times that a viewer of a low-latency stream was left without a parent in a tree", site)
	defReasons    = def(metric.Counter, "leeway_viewer_segment_reasons_total", "Why a segment was not from a peer", site, label("reason", metric.Reasons))
	defDuplicate  = def(metric.Counter, "leeway_viewer_duplicate_bytes_total", "Verified bytes that were there already", site)
	defWasted     = def(metric.Counter, "leeway_viewer_wasted_bytes_total", "Bytes fetched and never played", site)
	defRejectedB  = def(metric.Counter, "leeway_viewer_rejected_bytes_total", "Bytes that did not match their certificate", site)
	defStalls     = def(metric.Counter, "leeway_viewer_stalls_total", "Stalls", site, variant)
	defStallTime  = def(metric.Counter, "leeway_viewer_stall_seconds_total", "Time stalled", site, variant)
	defPlayed     = def(metric.Counter, "leeway_viewer_played_seconds_total", "Time played", site, variant)
	defPlayedBits = def(metric.Counter, "leeway_viewer_played_bits_total", "Bits played: time by bitrate", site, variant)
	defSwitches   = def(metric.Counter, "leeway_viewer_switches_total", "Changes of rendition", site, variant)
	defStartup    = &metric.Def{
		Name: "leeway_viewer_startup_seconds", Help: "Startup delay", Kind: metric.Histogram, Labels: []metric.Label{site, variant},
		Buckets: []float64{0.1, 0.2, 0.4, 0.7, 1, 1.5, 2, 3, 5, 10, 20},
	}
	defLiveLag = &metric.Def{
		Name: "leeway_viewer_live_lag_seconds", Help: "How far viewers of live streams are behind the stream's clock, once a report", Kind: metric.Histogram, Labels: []metric.Label{site, variant},
		Buckets: []float64{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 60, 600},
	}
	defLanes          = def(metric.Counter, "leeway_viewer_lane_bytes_total", "Bytes that viewers sent to others, by lane", site, label("lane", metric.Lanes))
	defPrefetched     = def(metric.Counter, "leeway_viewer_prefetched_bytes_total", "Bytes that viewers received in the background lane", site)
	defPrefetchWasted = def(metric.Counter, "leeway_viewer_prefetch_wasted_bytes_total", "Bytes fetched ahead and never played", site)
	defPromotions     = def(metric.Counter, "leeway_viewer_promotions_total", "Background requests that became foreground", site)
	defDisk           = def(metric.Counter, "leeway_viewer_disk_bytes_total", "Bytes of segments that viewers read from their own disks", site)
	defYields         = def(metric.Counter, "leeway_viewer_yields_total", "Times that a viewer's window fell to the floor for delay", site)
	defSlowdowns      = def(metric.Counter, "leeway_viewer_slowdowns_total", "Slowdowns, in which a viewer's queue drains", site)
	defQueuing        = spread("leeway_viewer_queuing_delay_seconds", "Queue that viewers measure on their uplinks, once a report", 0.001, 0.003, 0.01, 0.02, 0.04, 0.06, 0.1, 0.2, 0.5, 1)
	defBase           = spread("leeway_viewer_base_delay_seconds", "Least round trip that viewers measure, once a report", 0.003, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 1)
	defTarget         = spread("leeway_viewer_target_delay_seconds", "Queue that viewers allow themselves, once a report", 0.015, 0.02, 0.03, 0.04, 0.06)
	defWindow         = spread("leeway_viewer_window_bytes", "Window of viewers that sent something, once a report", 1200, 5000, 20_000, 80_000, 300_000, 1_200_000, 5_000_000)
	defPacing         = spread("leeway_viewer_pacing_second_bytes", "Bytes that a viewer's pacing lets go in a second, once a report", 1200, 12_500, 50_000, 125_000, 500_000, 1_250_000, 5_000_000, 12_500_000)
	defTitleViewers   = def(metric.Gauge, "leeway_tracker_title_viewers", "Viewers of the busiest titles of this tracker, and of all others", site, metric.Title())
	defTitleReceived  = def(metric.Counter, "leeway_viewer_title_received_bytes_total", "Bytes that viewers of a title received, by their own reports", site, metric.Title(), source, path)
	defContradictions = def(metric.Counter, "leeway_viewer_contradictions_total", "Contents that contradict each other under one name", site, label("kind", []string{"origin", "certificates"}))
	defLinkFailures   = def(metric.Counter, "leeway_viewer_link_failures_total", "Links that never opened", label("reason", signal.FailReasons))
)

// Metrics lists what the tracker counts.
func Metrics() []*metric.Def {
	return []*metric.Def{
		defSessions, defSwarms, defMembers, defViewers, defMessages, defSignaling, defErrors, defRejected, defTokens, defShed, defIntroductions, defLearned, defUnlearned, defSignals, defSignalRefused, defDeliveries, defSeedRefused, defMoves, defTrackers, defRevocations, defOff, defUnshared, defClamped, defReports, defBans, defManifests, defHandle,
		defReceived, defCredited, defUploaded, defSegments, defParts, defPartHops, defPartLost, defReasons, defDuplicate, defWasted, defRejectedB, defStalls, defStallTime, defPlayed,
		defLanes, defPrefetched, defPrefetchWasted, defPromotions, defDisk, defYields, defSlowdowns, defQueuing, defBase, defTarget, defWindow, defPacing,
		defPlayedBits, defSwitches, defStartup, defLiveLag, defContradictions, defLinkFailures,
		defTitleViewers, defTitleReceived,
	}
}
