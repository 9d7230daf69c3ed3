package main

const segments = "2s|4s|6s"

// broadcasts are live streams of segments of 2, 4 and 6 s. Their traces differ so much that a change of a few points says nothing.
var broadcasts = suite{
	name: "live", folder: "internal/viewer", benchmark: "LiveElsewhere",
	figures: []figure{
		{"offload-%", "offload", 0.3},
		{"saved-%", "saved", 0.3},
		{"stalled-%", "stalled", 0.05},
		{"behind-s", "behind", 0.02},
		{"Mbit/s", "Mbit/s", 0.01},
	},
	rows: []row{
		{asItIs, segments, "", "", ""},
		{nothing + ": 10.1 ms", segments, viewer + "world_test.go", "const oneWay = 10 * time.Millisecond", "const oneWay = 10100 * time.Microsecond"},
		{nothing + ": 9.9 ms", segments, viewer + "world_test.go", "const oneWay = 10 * time.Millisecond", "const oneWay = 9900 * time.Microsecond"},
		{"6b: a busy viewer is waited for as long where a seed holds the piece", segments, assign, "most = min(most, s.DurationUs/2)", "most += 0"},
		{"6d: no turn by line", segments, assign, " + min(max(0, s.OriginUs), s.DurationUs/4)", ""},
		{"6d: the turn from the request on", segments, assign, "max(s.AskedUs, s.CertHeldUs)", "s.AskedUs"},
		{"usable: as much of a seed ahead as of a film", segments, peers, "if ps.live {", "if false {"},
		{"a seed knows a segment as it is published", segments, viewer + "broadcast_test.go", "b.seedAt.Add(min(time.Second, b.duration/2)))", "b.published(seq))"},
		{"all that are introduced are offered to at once", segments, viewer + "links.go", "attemptsBound = 8", "attemptsBound = 32"},
	},
}
