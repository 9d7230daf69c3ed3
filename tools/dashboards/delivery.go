package main

import (
	"math"

	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// delivery answers an operator's two questions: what does it save, and does it hurt?
var delivery = board{
	uid: "leeway-delivery", title: "Leeway: Delivery", perSite: true, priced: true,
	about: "What peer delivery saves, and whether viewers pay for it: those with peers beside the control group, which the origin alone serves.",
	stats: []panel{
		{title: "Offload ratio", unit: units.PercentUnit,
			about:  "Share of viewers' bytes that came from other viewers, directly, as far as sender and receiver agree; relayed bytes and those of seeds do not count. Low with many viewers: see the row Why not from peers.",
			series: []series{{expr: offload("$__range")}}},
		{title: "Egress saved", unit: units.BytesSI,
			about:  "Bytes that viewers had from viewers, less what the seeds fetched from the origin to make that possible. Negative: titles have too few viewers at a time. Raise policy.certify_from or policy.min_viewers, or sign at the packager (leeway certify).",
			series: []series{{expr: saved("increase", "$__range")}}, colors: []color{{math.Inf(-1), bad}, {0, good}}},
		{title: "Money saved", unit: units.Number,
			about:  "Egress saved at the price of a GB above. The price is yours to set, in your currency.",
			series: []series{{expr: saved("increase", "$__range") + " / 1e9 * $price"}}, colors: []color{{math.Inf(-1), bad}, {0, good}}},
		{title: "Stall ratio, peers ÷ control", unit: units.Number,
			about:  "1 is what a viewer without peers has. Above 1 over hours: peer delivery costs stalls; look at Does it hurt?, and switch the site off until it is understood. Empty without a control group (control_group_permille of the site) or without any stall.",
			series: []series{{expr: stallRatio(`variant="peer"`, "$__range") + " / " + stallRatio(`variant="control"`, "$__range"), rare: true}}, colors: []color{{0, good}, {1.25, doubtful}, {2, bad}}},
	},
	rows: []row{
		{"What it saves", []panel{
			{title: "Viewers' bytes by source", unit: units.BytesPerSecondSI, stacked: true,
				about:  "Where viewers' bytes came from. The peers' share should grow with the number of viewers of one title; an origin that stays on top means short overlaps or few links.",
				series: []series{{expr: `sum by (source, path) (rate(leeway_viewer_received_bytes_total{site=~"$site"}[$__rate_interval]))`, legend: "{{source}} {{path}}"}}},
			{title: "Offload ratio", unit: units.PercentUnit, most: 1,
				about:  "As above, over time. A step down with steady viewers: a purge, a new player version, or a revoked key.",
				series: []series{{expr: offload("$__rate_interval")}}},
			{title: "Origin's bytes", unit: units.BytesPerSecondSI,
				about: "What the origin or CDN sends, and what it would send without peers. Seeds fetch each segment about once; more means that their store is too small (Cluster, evictions) or that the origin's validators change.",
				series: []series{
					{expr: `sum(rate(leeway_viewer_received_bytes_total{site=~"$site",source="origin"}[$__rate_interval]))`, legend: "to viewers"},
					{expr: `sum(rate(leeway_seed_origin_bytes_total{site=~"$site"}[$__rate_interval]))`, legend: "to seeds"},
					{expr: `sum(rate(leeway_viewer_received_bytes_total{site=~"$site"}[$__rate_interval]))`, legend: "without peers"},
				}},
			{title: "Egress saved by site", unit: units.BytesPerSecondSI, floorless: true,
				about:  "Bytes that viewers had from viewers, less what the seeds fetched from the origin for it, over time. Below 0 peers cost more than they save: too few viewers of a title at a time, or viewers far apart in it. Seeds then leave such titles to the origin by themselves (Titles at rest). Below 0 for long without one at rest: policy.costly_titles is share, or no title has lasted for three minutes.",
				series: []series{{expr: `sum by (site) (rate(leeway_viewer_credited_bytes_total{site=~"$site",path="direct"}[$__rate_interval])) - sum by (site) (rate(leeway_seed_origin_bytes_total{site=~"$site"}[$__rate_interval]))`, legend: "{{site}}"}}},
			{title: "Titles at rest", unit: units.Number,
				about:  "Titles whose peers cost more than they saved, two minutes long: the origin alone serves them for a while, and then they are tried again. A title that two seeds serve counts twice. Sign at the packager (leeway certify), and seeds have nothing to fetch. Many of them on a site with many viewers: a long tail; min_viewers keeps it out from the beginning.",
				series: []series{{expr: `sum by (site) (leeway_seed_resting_titles{site=~"$site"})`, legend: "{{site}}"}}},
		}},
		{"By site and title", []panel{
			{title: "Bytes by site", unit: units.BytesPerSecondSI, stacked: true,
				about:  "What viewers of each site received, from anywhere.",
				series: []series{{expr: `sum by (site) (rate(leeway_viewer_received_bytes_total{site=~"$site"}[$__rate_interval]))`, legend: "{{site}}"}}},
			// Sender and receiver report at their own times, so a short range can have more credited than received.
			{title: "Offload ratio by site", unit: units.PercentUnit, most: 1,
				about:  "As above, each site by itself. One that is far below the others has few viewers of a title at a time, signed URLs that differ by viewer, or no seed: see the row Why not from peers with that site alone.",
				series: []series{{expr: `clamp_max(sum by (site) (rate(leeway_viewer_credited_bytes_total{site=~"$site",path="direct"}[$__rate_interval])) / sum by (site) (rate(leeway_viewer_received_bytes_total{site=~"$site"}[$__rate_interval])), 1)`, legend: "{{site}}"}}},
			{title: "Viewers of the busiest titles", unit: units.Number, stacked: true,
				about:  "Ten titles of a site and tracker; other is all the rest. Titles are hashes unless tracker.title_names is on. Much of other: a long tail of titles, in which peers are few.",
				series: []series{{expr: `sum by (site, title) (leeway_tracker_title_viewers{site=~"$site"})`, legend: "{{site}} {{title}}"}}},
			{title: "Bytes by title", unit: units.BytesPerSecondSI, stacked: true,
				about:  "What viewers of each title received, from anywhere. A title that has just come among the ten begins at 0.",
				series: []series{{expr: `sum by (site, title) (rate(leeway_viewer_title_received_bytes_total{site=~"$site"}[$__rate_interval]))`, legend: "{{site}} {{title}}"}}},
			{title: "From peers by title", unit: units.PercentUnit, most: 1,
				about:  "Share of a title's bytes that came from other viewers, directly, by the reports of those that received them. A busy title far below the others: its segments differ by viewer, or no seed certifies it. Look at its manifest with leeway doctor.",
				series: []series{{expr: byTitle(`,source="peer",path="direct"`) + " / " + byTitle(""), legend: "{{site}} {{title}}"}}},
			{title: "Origin's bytes by title", unit: units.BytesPerSecondSI, stacked: true,
				about:  "What the origin or CDN sends to viewers for each title, without what seeds fetch. The tallest is where peers would save most.",
				series: []series{{expr: byTitle(`,source="origin"`), legend: "{{site}} {{title}}"}}},
		}},
		{"Does it hurt?", []panel{
			{title: "Startup delay", unit: units.Seconds,
				about: "Median and 95th percentile, with peers and in the control group. With peers it should not be above; if it is, look at the script's load time and at the tracker's distance.",
				series: []series{
					{expr: `histogram_quantile(0.5, sum by (le, variant) (rate(leeway_viewer_startup_seconds_bucket{site=~"$site"}[$__rate_interval])))`, legend: "{{variant}} p50"},
					{expr: `histogram_quantile(0.95, sum by (le, variant) (rate(leeway_viewer_startup_seconds_bucket{site=~"$site"}[$__rate_interval])))`, legend: "{{variant}} p95"},
				}},
			{title: "Stall ratio", unit: units.PercentUnit,
				about: "Time stalled ÷ time played. Both groups up: the origin. Peers alone up: peer delivery; switch the site off and read the reasons below.",
				series: []series{
					{expr: `sum by (variant) (rate(leeway_viewer_stall_seconds_total{site=~"$site"}[$__rate_interval])) / sum by (variant) (rate(leeway_viewer_played_seconds_total{site=~"$site"}[$__rate_interval]))`, legend: "{{variant}}"},
				}},
			{title: "Mean bitrate", unit: units.BitsPerSecondSI,
				about: "Of what was played. Below the control group: the player is told too little capacity.",
				series: []series{
					{expr: `sum by (variant) (rate(leeway_viewer_played_bits_total{site=~"$site"}[$__rate_interval])) / sum by (variant) (rate(leeway_viewer_played_seconds_total{site=~"$site"}[$__rate_interval]))`, legend: "{{variant}}"},
				}},
			{title: "Behind live", unit: units.Seconds,
				about: "How far viewers of live streams are behind the stream's clock, median and 95th percentile, by their own clocks. It is what the player is set to, about three segments. With peers it should not be above the control group; if it is, segments come late: look at the seeds' certificates and at the stalls. Both up: the packager or the origin is late.",
				series: []series{
					{expr: `histogram_quantile(0.5, sum by (le, variant) (rate(leeway_viewer_live_lag_seconds_bucket{site=~"$site"}[$__rate_interval])))`, legend: "{{variant}} p50", rare: true},
					{expr: `histogram_quantile(0.95, sum by (le, variant) (rate(leeway_viewer_live_lag_seconds_bucket{site=~"$site"}[$__rate_interval])))`, legend: "{{variant}} p95", rare: true},
				}},
			{title: "From publication to viewers", unit: units.Seconds,
				about: "From when a segment of a live stream was there, by the stream's clock, to its certificate (95th percentile), and until viewers that are linked to a seed said that they hold all of it: the median, and the 99th percentile, which is the last of a hundred. By the seeds' clocks. p99 below three segments: the last viewer has it before it is played. Near three segments: viewers are about to stall; look at the certificates if they are late as well, otherwise at uplinks and at the seeds' rate. Viewers that do not upload say nothing. Empty without live HLS that says the time.",
				series: []series{
					{expr: `histogram_quantile(0.95, sum by (le) (rate(leeway_seed_live_certificate_seconds_bucket{site=~"$site"}[$__rate_interval])))`, legend: "certificate p95", rare: true},
					{expr: `histogram_quantile(0.5, sum by (le) (rate(leeway_seed_live_held_seconds_bucket{site=~"$site"}[$__rate_interval])))`, legend: "viewers p50", rare: true},
					{expr: `histogram_quantile(0.99, sum by (le) (rate(leeway_seed_live_held_seconds_bucket{site=~"$site"}[$__rate_interval])))`, legend: "viewers p99", rare: true},
				}},
			{title: "Switches of rendition", unit: units.Number,
				about:  "In an hour of play. More than in the control group: the estimate of capacity is unsteady.",
				series: []series{{expr: `3600 * sum by (variant) (rate(leeway_viewer_switches_total{site=~"$site"}[$__rate_interval])) / sum by (variant) (rate(leeway_viewer_played_seconds_total{site=~"$site"}[$__rate_interval]))`, legend: "{{variant}}"}}},
			{title: "Evidence of harm", unit: units.PercentUnit, floorless: true,
				about: "What the trackers make of all this (spec/experiment.md): how strongly viewers with peers seem worse off, in stalls, startup, or no picture at all. At 100 % peer delivery is switched off by itself, and LeewayHarm says so; below 0 there is none. From half on, look for what was released today.",
				series: []series{
					{expr: `max by (outcome) (leeway_tracker_trial_evidence_ratio{site=~"$site"})`, legend: "{{outcome}}"},
				}},
			{title: "Viewers compared", unit: units.Number,
				about: "In an hour, by group: one of a subnet counts in a day, so they are fewer than viewers. Control near zero with many viewers: raise control_group_permille, or name your proxy in tracker.trusted_proxies.",
				series: []series{
					{expr: `3600 * sum by (variant) (rate(leeway_tracker_trial_viewers_total{site=~"$site"}[$__rate_interval]))`, legend: "{{variant}}"},
				}},
			{title: "Switched off", unit: units.Number, most: 1,
				about: "1 while peer delivery of a site is off: by an operator, by the configuration, or for harm. Viewers play from the origin. leeway switch SITE on ends it.",
				series: []series{
					{expr: `max by (site, reason) (leeway_tracker_delivery_off{site=~"$site"})`, legend: "{{site}}: {{reason}}"},
				}},
			{title: "Wrong bytes", unit: units.BytesPerSecondSI,
				about:  "Bytes that did not match their certificate; they were not played. A steady trickle is one broken or hostile viewer, which is banned; much of it after a purge or a re-encode under the same URL: purge the path.",
				series: []series{{expr: `sum(rate(leeway_viewer_rejected_bytes_total{site=~"$site"}[$__rate_interval]))`}}},
			{title: "Contradictions", unit: units.Number,
				about:  "Segments of the origin that contradict a certificate, in an hour. Anything but zero: files were replaced under their URL. Run leeway purge for the path.",
				series: []series{{expr: `3600 * sum(rate(leeway_viewer_contradictions_total{site=~"$site"}[$__rate_interval]))`}}},
		}},
		{"What players report", []panel{
			{title: "Stalls and failures by players' reports", unit: units.Number,
				about: "In an hour, of sites with cmcd: players' own word by CMCD, with Leeway and without (docs/operations/observing.md). Stalls here and none under Stall ratio: viewers on whose pages the script does not run. Empty: no site takes reports.",
				series: []series{
					{expr: `3600 * sum by (state) (rate(leeway_cmcd_states_total{site=~"$site",state=~"rebuffering|fatal-error"}[$__rate_interval]))`, legend: "{{state}}"},
				}},
			{title: "Answers to players", unit: units.CountsPerSecond, stacked: true,
				about: "What origin or CDN answered, by the same reports. 4xx: tokens that ran out, or segments that left a live playlist. 5xx and other: the origin.",
				series: []series{
					{expr: `sum by (class) (rate(leeway_cmcd_responses_total{site=~"$site"}[$__rate_interval]))`, legend: "{{class}}"},
				}},
			{title: "Reports that were not counted", unit: units.CountsPerSecond,
				about: "Of all sites, by reason. origin: the page is on no page_origins. off: the site has no cmcd. malformed: no events of CTA-5004-B.",
				series: []series{
					{expr: `sum by (reason) (rate(leeway_cmcd_refused_total[$__rate_interval]))`, legend: "{{reason}}"},
				}},
		}},
		{"Low latency", []panel{
			{title: "Parts by source", unit: units.CountsPerSecond, stacked: true,
				about:  "Parts of low-latency streams by where most of each came from, by viewers' reports. The peers' share grows with the number of viewers of one rendition. The origin on top with many viewers: no seed certifies the parts in time (Cluster, Certificates of parts), or viewers leave their parents all the time (Parents lost). Empty: no low-latency stream.",
				series: []series{{expr: `sum by (source) (rate(leeway_viewer_parts_total{site=~"$site"}[$__rate_interval]))`, legend: "{{source}}", rare: true}}},
			{title: "Depth of trees", unit: units.Number,
				about:  "Hops from the seed to a viewer, in the deepest of its trees, on average; what the origin alone brings counts as 0. It grows with the logarithm of the number of viewers, and ends at 7. Above 4 with a few dozen viewers: most of them have no uplink for children, or say so (leeches, upload_kbps).",
				series: []series{{expr: `sum(rate(leeway_viewer_part_hops_total{site=~"$site"}[$__rate_interval])) / sum(rate(leeway_viewer_parts_total{site=~"$site"}[$__rate_interval]))`, rare: true}}},
			{title: "Parents lost", unit: units.Number,
				about:  "Times a minute that a viewer is left without a parent in one of its four trees, and finds another: it had missed two parts, had no more room, or was gone. A viewer that leaves orphans its children. Above one for each viewer and minute without many that leave: uplinks are too slow for what is asked of them, or machines are out of CPU.",
				series: []series{{expr: `60 * sum(rate(leeway_viewer_part_parents_lost_total{site=~"$site"}[$__rate_interval])) / sum(leeway_tracker_viewers{site=~"$site"})`, legend: "a viewer", rare: true}}},
		}},
		{"Why not from peers", []panel{
			{title: "Segments by reason", unit: units.CountsPerSecond, stacked: true,
				about:  "Segments that were not from a peer, by reason. docs/operations/observing.md has what to do for each of them. no-holder: no other viewer has it yet; urgent: too late to ask; no-cert: no seed has certified it (is one there? does the title rest?); budget: raise the seeds' budgets; udp-blocked, symmetric-nat: set up TURN; lna-denied: the viewer's browser asked and was told no.",
				series: []series{{expr: `sum by (reason) (rate(leeway_viewer_segment_reasons_total{site=~"$site"}[$__rate_interval]))`, legend: "{{reason}}"}}},
			{title: "Viewers by role", unit: units.Number, stacked: true,
				about:  "What viewers are to their titles. leech: they never upload, by the site's policy, by their tokens, or because their line is metered or unknown (phones; policy.unknown_line). Many leeches and a low offload ratio belong together. off: control group, roll-out, or switched off.",
				series: []series{{expr: `sum by (viewer_role) (leeway_tracker_viewers{site=~"$site"})`, legend: "{{viewer_role}}"}}},
			{title: "Links that never opened", unit: units.EventsPerSecond,
				about:  "Of all sites, by reason. timeout above a tenth of the introductions (Cluster, Introductions and signals): viewers behind NATs that cannot meet; TURN helps.",
				series: []series{{expr: `sum by (reason) (rate(leeway_viewer_link_failures_total[$__rate_interval]))`, legend: "{{reason}}"}}},
			{title: "Bytes for nothing", unit: units.PercentUnit,
				about: "Share of viewers' bytes that came twice, and that were never played. Twice above 2 %: uplinks are too slow for what is asked of them.",
				series: []series{
					{expr: `sum(rate(leeway_viewer_duplicate_bytes_total{site=~"$site"}[$__rate_interval])) / ` + received("$__rate_interval"), legend: "twice"},
					{expr: `sum(rate(leeway_viewer_wasted_bytes_total{site=~"$site"}[$__rate_interval])) / ` + received("$__rate_interval"), legend: "not played"},
				}},
		}},
	},
}

func received(over string) string {
	return `sum(rate(leeway_viewer_received_bytes_total{site=~"$site"}[` + over + `]))`
}

// byTitle is the rate of what viewers of titles received, of the series that more picks.
func byTitle(more string) string {
	return `sum by (site, title) (rate(leeway_viewer_title_received_bytes_total{site=~"$site"` + more + `}[$__rate_interval]))`
}

func offload(over string) string {
	return `sum(rate(leeway_viewer_credited_bytes_total{site=~"$site",path="direct"}[` + over + `])) / ` + received(over)
}

func saved(f, over string) string {
	return `(sum(` + f + `(leeway_viewer_credited_bytes_total{site=~"$site",path="direct"}[` + over + `])) - sum(` + f + `(leeway_seed_origin_bytes_total{site=~"$site"}[` + over + `])))`
}

func stallRatio(variant, over string) string {
	return `(sum(increase(leeway_viewer_stall_seconds_total{site=~"$site",` + variant + `}[` + over + `])) / sum(increase(leeway_viewer_played_seconds_total{site=~"$site",` + variant + `}[` + over + `])))`
}
