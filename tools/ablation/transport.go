package main

const (
	law     = "internal/ledbat/constants.go"
	control = "internal/ledbat/controller.go"
	path    = "internal/ledbat/path.go"
	ceil    = "internal/ledbat/ceiling.go"
	seeds   = "internal/ledbat/elsewhere_test.go"

	roads   = "3Mbit-60ms-100KB|25Mbit-24ms-120KB|8Mbit-50ms-128KB-spikes|5Mbit-60ms-20KB|1.5Mbit-140ms-60KB|60Mbit-30ms-300KB|12Mbit-34ms-150KB-lossy"
	uplinks = "3Mbit-60ms-100KB|25Mbit-24ms-120KB|8Mbit-50ms-128KB-spikes|1.5Mbit-140ms-60KB|0.6Mbit-50ms-60KB|12Mbit-6ms-60KB|3Mbit-8ms-30KB"
)

// backgrounds is the controller of a host without foreground.
var backgrounds = suite{
	name: "background", folder: "internal/ledbat", benchmark: "BackgroundElsewhere",
	figures: []figure{
		{"used", "used", 0.005},
		{"p95-ms", "p95", 0.5},
		{"drop-%", "dropped", 0.01},
		{"cubic", "CUBIC keeps", 0.005},
		{"reno", "Reno keeps", 0.005},
		{"newcomer", "newcomer", 0.01},
	},
	rows: []row{
		{asItIs, roads, "", "", ""},
		otherSeeds(1, roads, "14"), otherSeeds(2, roads, "17"),
		{"growth by an eighth: off", roads, control, "if s.Now-c.crowdedAt >= fastAfter*(s.Base+s.Queuing) {", "if false {"},
		{"growth by an eighth, after 16 round trips, half", roads, law, "fastAfter = 16 ", "fastAfter = 8 "},
		{"growth by an eighth, after 16 round trips, twice", roads, law, "fastAfter = 16 ", "fastAfter = 32 "},
		{"growth by an eighth, half", roads, law, "fastPart  = 8 ", "fastPart  = 16 "},
		{"growth by an eighth, twice", roads, law, "fastPart  = 8 ", "fastPart  = 4 "},
		{"growth is halved above half of the target: off", roads, control, "step /= 2 // what", "step /= 1 // what"},
		{"the way there: off", roads, control, "return change * min(trip, rtt) / max(1, rtt)", "_, _ = trip, rtt\n	return change"},
		{"a change of at most half of the window: off", roads, control, "-c.window/2)\n", "-c.window)\n"},
		{"few packets: off", roads, path, "/4), 4), p.few())", "/4), 4))"},
		{"loss: a fifth without a queue, too", roads, law, "lossLeast = 50 ", "lossLeast = 200 "},
		{"room: 90 %, 80", roads, law, "roomPart = 90 ", "roomPart = 80 "},
		{"room: 90 %, all of it", roads, law, "roomPart = 90 ", "roomPart = 100 "},
		{"room: 10 s, half", roads, law, "roomTime = 10_000_000 ", "roomTime = 5_000_000 "},
		{"room: 10 s, twice", roads, law, "roomTime = 10_000_000 ", "roomTime = 20_000_000 "},
		{"pacing: 9/8, none", roads, law, "pacingGain = 1125 ", "pacingGain = 1000 "},
		{"pacing: 9/8, 5/4", roads, law, "pacingGain = 1125 ", "pacingGain = 1250 "},
	},
}

// foregrounds is the controller of a viewer that uploads foreground.
var foregrounds = suite{
	name: "foreground", folder: "internal/ledbat", benchmark: "ForegroundElsewhere",
	figures: []figure{
		{"used", "used", 0.005},
		{"p95-ms", "p95", 0.5},
		{"down-used", "used beside a download", 0.005},
		{"down-p95-ms", "p95 beside a download", 0.5},
	},
	rows: []row{
		{asItIs, uplinks, "", "", ""},
		otherSeeds(1, uplinks, "14"), otherSeeds(2, uplinks, "17"),
		{"growth by an eighth: off", uplinks, control, "if s.Now-c.crowdedAt >= fastAfter*(s.Base+s.Queuing) {", "if false {"},
		{"the way there: off", uplinks, control, "return change * min(trip, rtt) / max(1, rtt)", "_, _ = trip, rtt\n	return change"},
		{"growth is halved above half of the target: off", uplinks, control, "step /= 2 // what", "step /= 1 // what"},
		{"ceiling: stretches of 250 ms, half", uplinks, ceil, "ceilingTime  = 250_000 ", "ceilingTime  = 125_000 "},
		{"ceiling: stretches of 250 ms, twice", uplinks, ceil, "ceilingTime  = 250_000 ", "ceilingTime  = 500_000 "},
		{"ceiling: best of 5 s, half", uplinks, ceil, "ceilingBest  = 5_000_000 ", "ceilingBest  = 2_500_000 "},
		{"ceiling: best of 5 s, twice", uplinks, ceil, "ceilingBest  = 5_000_000 ", "ceilingBest  = 10_000_000 "},
		{"ceiling: idle for 25 ms, none", uplinks, ceil, "ceilingIdle  = 25_000 ", "ceilingIdle  = 0 "},
		{"ceiling: idle for 25 ms, half", uplinks, ceil, "ceilingIdle  = 25_000 ", "ceilingIdle  = 12_500 "},
		{"ceiling: idle for 25 ms, twice", uplinks, ceil, "ceilingIdle  = 25_000 ", "ceilingIdle  = 50_000 "},
		{"drain: 60 ms, half", uplinks, ceil, "ceilingDrain = 60_000 ", "ceilingDrain = 30_000 "},
		{"drain: 60 ms, twice", uplinks, ceil, "ceilingDrain = 60_000 ", "ceilingDrain = 120_000 "},
	},
}

// otherSeeds is a row with other dice.
func otherSeeds(n int, worlds, first string) row {
	return row{nothing + ": other dice, " + string(rune('0'+n)), worlds, seeds, "figure(seed + 11)", "figure(seed + " + first + ")"}
}
