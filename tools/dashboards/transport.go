package main

import "github.com/grafana/grafana-foundation-sdk/go/units"

// transport answers whether what is sent gives way to others, and what it brings.
var transport = board{
	uid: "leeway-transport", title: "Leeway: Transport", perSite: true,
	about: "How uploads and prefetch share the lines of viewers: the queue that they make there, what gave way, and what prefetch brought and lost.",
	stats: []panel{
		{title: "Queue on uplinks, p95", unit: units.Seconds,
			about:  "What viewers measure of the queue before their uplinks while they send. Above a tenth of a second for long: other traffic fills those lines, or a browser's clock misleads; below, calls and pages of the same home do not feel the uploads.",
			series: []series{{expr: spread("0.95", "queuing_delay_seconds", "$__range")}}, colors: []color{{0, good}, {0.1, doubtful}, {0.3, bad}}},
		{title: "Prefetch lost", unit: units.PercentUnit,
			about:  "Bytes that were fetched ahead and not played ÷ all bytes of viewers. The waste budget keeps it below a tenth; lower waste_bytes of the site if that is too much.",
			series: []series{{expr: `sum(rate(leeway_viewer_prefetch_wasted_bytes_total{site=~"$site"}[$__range])) / ` + received("$__range")}}, colors: []color{{0, good}, {0.1, bad}}},
		{title: "Fetched ahead", unit: units.PercentUnit,
			about:  "Bytes of the background lane ÷ all bytes of viewers. 0 where the site's policy has prefetch off, or no viewer is ahead of another.",
			series: []series{{expr: `sum(rate(leeway_viewer_prefetched_bytes_total{site=~"$site"}[$__range])) / ` + received("$__range")}}},
		{title: "Yields", unit: units.Number,
			about:  "Times in an hour that a viewer's window fell to the floor because other traffic was on the line. Many are a busy home, and the lane doing its work.",
			series: []series{{expr: `3600 * sum(rate(leeway_viewer_yields_total{site=~"$site"}[$__range]))`}}},
	},
	rows: []row{
		{"The lines", []panel{
			{title: "Queue before uplinks", unit: units.Seconds,
				about: "Median and 95th percentile of the viewers' queuing delay, once a report. The controller holds it near the target; a p95 far above it that stays is other people's traffic.",
				series: []series{
					{expr: spread("0.5", "queuing_delay_seconds", "$__rate_interval"), legend: "p50"},
					{expr: spread("0.95", "queuing_delay_seconds", "$__rate_interval"), legend: "p95"},
					{expr: spread("0.5", "target_delay_seconds", "$__rate_interval"), legend: "target"},
				}},
			{title: "Base delay", unit: units.Seconds,
				about: "Least round trip between viewers. A step up for all: another route, or viewers from farther away; half of it, 15 to 60 ms, is the target.",
				series: []series{
					{expr: spread("0.5", "base_delay_seconds", "$__rate_interval"), legend: "p50"},
					{expr: spread("0.95", "base_delay_seconds", "$__rate_interval"), legend: "p95"},
				}},
			{title: "Window", unit: units.BytesSI,
				about: "What a viewer may have in flight over all its links. At 1,200 bytes it is on the floor: it gives way, or its line has no room.",
				series: []series{
					{expr: spread("0.5", "window_bytes", "$__rate_interval"), legend: "p50"},
					{expr: spread("0.95", "window_bytes", "$__rate_interval"), legend: "p95"},
				}},
			{title: "Pacing", unit: units.BytesPerSecondSI,
				about: "What a viewer's pacing lets go. Far below the uplinks of your audience with a short queue: viewers are asked for little, which is no fault.",
				series: []series{
					{expr: spread("0.5", "pacing_second_bytes", "$__rate_interval"), legend: "p50"},
					{expr: spread("0.95", "pacing_second_bytes", "$__rate_interval"), legend: "p95"},
				}},
			{title: "Yields and slowdowns", unit: units.Number,
				about: "In an hour. Slowdowns are regular: a queue of one's own drains in them. Yields come when others send.",
				series: []series{
					{expr: `3600 * sum(rate(leeway_viewer_yields_total{site=~"$site"}[$__rate_interval]))`, legend: "yields"},
					{expr: `3600 * sum(rate(leeway_viewer_slowdowns_total{site=~"$site"}[$__rate_interval]))`, legend: "slowdowns"},
				}},
			{title: "Uploads by lane", unit: units.BytesPerSecondSI, stacked: true,
				about:  "What viewers send to others, by the lane of the request. Background without foreground at night is viewers that fetch ahead of each other; none by day where prefetch is on: waste budgets are spent, or buffers are short.",
				series: []series{{expr: `sum by (lane) (rate(leeway_viewer_lane_bytes_total{site=~"$site"}[$__rate_interval]))`, legend: "{{lane}}"}}},
		}},
		{"Prefetch", []panel{
			{title: "Fetched ahead and lost", unit: units.BytesPerSecondSI,
				about: "Bytes of the background lane, and those that were fetched ahead and not played. Lost close to fetched: viewers leave or seek early; lower waste_bytes.",
				series: []series{
					{expr: `sum(rate(leeway_viewer_prefetched_bytes_total{site=~"$site"}[$__rate_interval]))`, legend: "fetched"},
					{expr: `sum(rate(leeway_viewer_prefetch_wasted_bytes_total{site=~"$site"}[$__rate_interval]))`, legend: "lost"},
				}},
			{title: "Promotions", unit: units.EventsPerSecond,
				about:  "Background requests that became foreground, since the player asked for their segment. Many: the background is too slow to be ahead, which is what yielding costs.",
				series: []series{{expr: `sum(rate(leeway_viewer_promotions_total{site=~"$site"}[$__rate_interval]))`}}},
		}},
		{"Seeds", []panel{
			{title: "Sent by lane", unit: units.BytesPerSecondSI, stacked: true,
				about:  "Seeds send what is asked for in the foreground as fast as it goes, and give way in the background. Viewers do not ask seeds to be ahead: background here is another client.",
				series: []series{{expr: `sum by (lane) (rate(leeway_seed_lane_bytes_total[$__rate_interval]))`, legend: "{{lane}}"}}},
			{title: "Seeds' queue", unit: units.Seconds,
				about: "Median and 95th percentile of the queue that seeds measure while they send in the background, and their base delay.",
				series: []series{
					{expr: `histogram_quantile(0.5, sum by (le) (rate(leeway_seed_queuing_delay_seconds_bucket[$__rate_interval])))`, legend: "p50", rare: true},
					{expr: `histogram_quantile(0.95, sum by (le) (rate(leeway_seed_queuing_delay_seconds_bucket[$__rate_interval])))`, legend: "p95", rare: true},
					{expr: `max(leeway_seed_base_delay_seconds)`, legend: "base"},
					{expr: `max(leeway_seed_target_delay_seconds)`, legend: "target"},
				}},
			{title: "Seeds' window", unit: units.BytesSI,
				about:  "Bytes that the background lane of a seed may have in flight. On the floor of 1,200 bytes: the line of that machine is full, with its own foreground or with others.",
				series: []series{{expr: `max(leeway_seed_window_bytes)`, legend: "most"}, {expr: `min(leeway_seed_window_bytes)`, legend: "least"}}},
			{title: "Seeds' pacing", unit: units.BytesPerSecondSI,
				about:  "What pacing lets go in the background lane of a seed. It follows what is asked for: low without such requests is no fault.",
				series: []series{{expr: `max(leeway_seed_pacing_second_bytes)`, legend: "most"}, {expr: `min(leeway_seed_pacing_second_bytes)`, legend: "least"}}},
			{title: "Seeds give way", unit: units.Number,
				about: "In an hour: times that the background lane fell to the floor for delay, slowdowns in which its own queue drains, background requests that became foreground. All at zero without background requests.",
				series: []series{
					{expr: `3600 * sum(rate(leeway_seed_yields_total[$__rate_interval]))`, legend: "yields"},
					{expr: `3600 * sum(rate(leeway_seed_slowdowns_total[$__rate_interval]))`, legend: "slowdowns"},
					{expr: `3600 * sum(rate(leeway_seed_promotions_total[$__rate_interval]))`, legend: "promotions"},
				}},
		}},
	},
}

// spread is a quantile over viewers of what they report.
func spread(quantile, what, window string) string {
	return `histogram_quantile(` + quantile + `, sum by (le) (rate(leeway_viewer_` + what + `_bucket{site=~"$site"}[` + window + `])))`
}
