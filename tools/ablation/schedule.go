package main

import "fmt"

const (
	decide   = "internal/schedule/decide.go"
	peers    = "internal/schedule/peers.go"
	waiting  = "internal/schedule/waiting.go"
	certs    = "internal/schedule/certificates.go"
	assign   = "internal/schedule/assignment.go"
	urgent   = "internal/schedule/urgent.go"
	segment  = "internal/schedule/segment.go"
	input    = "internal/schedule/input.go"
	prefetch = "internal/schedule/prefetch.go"
	meter    = "internal/transfer/meter.go"
	viewer   = "internal/viewer/"

	plain      = "eight|thin" // worlds for most rows
	everywhere = plain + "|narrow|rough|hanging|silent|fading|dying|dumb|crowd|uneven|falling|ladder|steps|twins|turns|pausing|halting|ahead|ahead-narrow"
)

// schedule is the source as it is, what only changes the dice, then rules that are off, then constants at a half and at the double.
var schedule = suite{
	name: "schedule", folder: "internal/viewer", benchmark: "ScheduleElsewhere",
	figures: []figure{
		{"offload-%", "offload", 0.3},
		{"requests/segment", "requests", 0.05},
		{"twice-%", "twice", 0.05},
		{"wasted-%", "wasted", 0.1},
		{"stalled-%", "stalled", 0.05},
		{"uplink-ms-p95", "p95", 1},
		{"startup-ms", "startup", 10},
		{"Mbit/s", "Mbit/s", 0.01},
		{"unfinished", "unfinished", 0.1},
	},
	rows: scheduleRows,
}

var scheduleRows = []row{
	{asItIs, everywhere, "", "", ""},
	dice(1, "0xab"), dice(2, "0xac"), dice(3, "0xad"), dice(4, "0xae"),
	{nothing + ": 10.1 ms", everywhere, viewer + "world_test.go", "const oneWay = 10 * time.Millisecond", "const oneWay = 10100 * time.Microsecond"},

	// Rules 1 and 6: peers.
	{"stall time: no round trips", plain + "|rough", peers, "max(leastStall, 4*p.RTTUs+3_000_000*min(p.Queued, probation)/max(p.Rate, leastRate))", "max(leastStall, 3_000_000*min(p.Queued, probation)/max(p.Rate, leastRate))"},
	{"stall time: no queue", plain + "|rough", peers, "max(leastStall, 4*p.RTTUs+3_000_000*min(p.Queued, probation)/max(p.Rate, leastRate))", "max(leastStall, 4*p.RTTUs)"},
	{"stall time: queue, not of the rate", plain + "|rough", peers, "/max(p.Rate, leastRate))", "/leastRate)"},
	{"usable: no bound of four seconds", plain + "|rough|crowd|uneven|fading|turns|pausing", peers, "most = min(most, max(pieceSize, 4*p.Rate))", ""},
	{"usable: no bound while the rate is unknown", plain + "|rough", peers, "most = min(most, probation)", "most += 0"},
	{"usable: no bound of seeds", plain + "|crowd|uneven|dying|twins|turns", peers, "most = ps.policy.SeedCap", "most += 0"},
	{"last piece first: off", plain + "|narrow", assign, "if fresh && n > 0 &&", "if false && fresh && n > 0 &&"},
	{"6: a viewer after turn_us", plain + "|rough", assign, "left := min(s.turnUs(a.policy.UrgentPermille), s.AskedUs+s.DurationUs) - a.timer.nowUs", "left := s.AskedUs+s.DurationUs - a.timer.nowUs"},
	{"6: a viewer after its own play time", plain + "|rough", assign, "left := min(s.turnUs(a.policy.UrgentPermille), s.AskedUs+s.DurationUs) - a.timer.nowUs", "left := s.turnUs(a.policy.UrgentPermille) - a.timer.nowUs"},
	{"6b: no wait for a busy viewer", plain + "|silent|dying|dumb|pausing|halting", assign, "if slices.ContainsFunc(a.peers.viewers, holds) && a.timer.waits(", "if false && slices.ContainsFunc(a.peers.viewers, holds) && a.timer.waits("},
	{"6c: no wait for a stalled holder", plain + "|silent|rough|dying|dumb|pausing|halting", assign, "if !held || !a.timer.waits(until) {", "if true || !held {"},
	{"6c: the wait, however long it stays stalled", plain + "|rough|dying|dumb|pausing|halting", assign, "return p.StalledUntilUs < until && p.has(s.ID, n)", "return p.has(s.ID, n)"},
	{"6d: no owner", plain + "|dying|dumb", assign, "if !a.leaves(s, n, interested) {", "if true || !a.leaves(s, n, interested) {"},
	{"6d: the wait from the asking alone", plain + "|dying|dumb", assign, "max(from, heard)+a.policy.PatienceUs", "from+0*heard+a.policy.PatienceUs"},
	{"6d: seeds in order of the pieces", plain + "|dying|dumb", assign, "	if len(a.peers.viewers) > 0 {\n		ranks", "	if false {\n		ranks"},
	{"5: stranded, no wait", plain + "|dying|dumb", decide, "|| !d.timer.waits(s.AskedUs+d.in.Policy.PatienceUs) {\n		d.plan.origin(s, NoHolder)", "|| !d.timer.waits(s.AskedUs) {\n		d.plan.origin(s, NoHolder)"},
	{"4: no next peer for a certificate", plain + "|rough|dying|dumb", certs, "} else if !c.timer.waits(s.CertAskedUs + int64(len(s.CertPeers))*(c.policy.CertPatienceUs/4)) {", "} else if false {"},

	// Rule 3.
	{"urgent: window of 1.5 durations alone", plain + "|narrow", segment, "return min(full, s.DurationUs/4+3*s.OriginUs)", "return full"},
	{"turn: no bound of 5/4", plain + "|rough", segment, ", s.AskedUs+s.DurationUs*5/4)", ")"},
	{"turn: no bound of the play time", plain + "|narrow|rough", segment, "return min(s.DeadlineUs-s.UrgentWindow(permille), max(inTime, s.DeadlineUs-s.DurationUs), s.AskedUs+s.DurationUs*5/4)", "_ = inTime\n	return min(s.DeadlineUs-s.UrgentWindow(permille), s.AskedUs+s.DurationUs*5/4)"},
	{"turn: play time, not the last duration", plain + "|narrow|rough", segment, "max(inTime, s.DeadlineUs-s.DurationUs)", "inTime"},
	{"rescue: off", plain + "|narrow|rough|hanging|silent|dying|dumb|twins|turns", decide, "if certified && proven && s.Origin == OriginIdle && d.urgent.rescue(s) {", "if false {"},
	{"rescue: to the end of the window", plain + "|narrow|rough|hanging|silent|dying|dumb", urgent, "if u.slack(s) < half {\n		return false", "if false {\n		return false"},
	{"rescue: no preference of the seed asked", plain + "|narrow|rough|hanging|silent|dying|dumb|twins|turns", urgent, "best := u.rescuer(s, open, 0)", "best := u.rescuer(s, open, len(open))"},
	{"proving: off", plain + "|rough", decide, "d.urgent.prove(s)", ""},
	{"race: off", plain + "|narrow|rough|hanging|silent", decide, "d.urgent.race(s, turn)", ""},
	{"race: the origin's time does not count", plain + "|narrow|rough|hanging|silent", urgent, "if s.OriginUs >= 0 && u.timer.waits(due+1) {", "if false && u.timer.waits(due+1) {"},
	{"race: the origin's time without the duration's bound", plain + "|narrow|rough|hanging|silent", urgent, "min(s.OriginUs*3/2, s.DurationUs)", "s.OriginUs*3/2"},
	{"race: only deep in the window", plain + "|narrow|rough|hanging|silent", urgent, "if !deep && (len(s.Have) > 0 || s.DeadlineUs-s.AskedUs >= window) {", "if !deep {"},
	{"race: also where peers had time", plain + "|narrow|rough|hanging|silent", urgent, "if !deep && (len(s.Have) > 0 || s.DeadlineUs-s.AskedUs >= window) {", "if false {"},

	// Credit, stretches, lateness.
	{"credit: no bound of a second", plain + "|rough", viewer + "credit.go", "return max(0, creditTime-c.spent), !c.proven", "return 0, false"},
	{"slow credit: no bound", plain + "|rough", waiting, "return min(turn, w.in.NowUs+w.in.SlowCreditUs-1)", "return turn"},
	{"slow credit: does not come back", plain + "|rough", viewer + "slowcredit.go", "t.left = min(slowCreditTime, t.left+took)", ""},
	{"slow credit: also for holders that send enough", plain + "|rough", waiting, "case w.worth(s):", "case false:"},
	{"slow credit 1 s, half", plain + "|rough", viewer + "slowcredit.go", "slowCreditTime = time.Second", "slowCreditTime = 500 * time.Millisecond"},
	{"slow credit 1 s, twice", plain + "|rough", viewer + "slowcredit.go", "slowCreditTime = time.Second", "slowCreditTime = 2 * time.Second"},
	{"worth: a 32nd, half", plain + "|rough", waiting, "worthShare = 32", "worthShare = 64"},
	{"worth: a 32nd, twice", plain + "|rough", waiting, "worthShare = 32", "worthShare = 16"},
	{"filling: off", plain + "|narrow|rough", waiting, "case w.filling(s):", "case false:"},
	{"filling: whatever the peers' rates", plain + "|narrow|rough", waiting, "w.peers.rates(s) < int64(s.Pieces)", "w.peers.rates(s) < 1<<40+int64(s.Pieces)"},
	{"filling 10 s, half", plain + "|narrow|rough", segment, "fillUs = 10_000_000", "fillUs = 5_000_000"},
	{"filling 10 s, twice", plain + "|narrow|rough", segment, "fillUs = 10_000_000", "fillUs = 20_000_000"},
	{"stretch: the whole segment", plain + "|rough", viewer + "loads.go", "ls.line.wholes || !ls.sharing() {\n		return &originFetch{}", "true {\n		return &originFetch{}"},
	{"stretch: no bridge", plain, viewer + "loads.go", "const bridge = 4", "const bridge = 0"},
	{"stretch: pieces on their way, too", plain, viewer + "loads.go", "if p == nil && (all || !flying[n]) {", "if p == nil && (all || true) {"},
	{"lateness: off", plain + "|rough", viewer + "patience.go", "if p.lenient || first < 0 {", "if true || first < 0 {"},
	{"lateness: never forgiven", plain + "|rough|pausing|halting", viewer + "patience.go", "p.lateness.times = 0", "p.lateness.times += 0"},
	{"mute: off", plain + "|rough", viewer + "patience.go", "if p.heard(); p.mute.pings == 0 {\n		p.mute.pings, p.mute.came = 1", "if p.heard(); false {\n		p.mute.pings, p.mute.came = 1"},
	{"rate: not bounded by the mean", plain + "|rough", meter, "if m.burst == 0 || m.due.time < meanLeast {", "if true {"},
	{"rate: low ones not forgotten", plain + "|rough", meter, "return m.burst > 0 && m.measured() < unknownPace && now.Sub(m.last) >= rateAge", "return false"},
	{"rate: the first sample as the others", plain + "|rough", meter, "if m.burst == 0 { //", "if false { //"},
	{"progress: every byte pays in full", plain + "|rough", meter, "byteWorth = 183 * time.Microsecond", "byteWorth = time.Second"},
	{"origin's rest: none", "rough", viewer + "line.go", "Sub(l.failed) < originRest", "Sub(l.failed) < 0*originRest"},

	// Capacity.
	{"capacity: no margin", "eight|narrow|fading|falling|ladder|steps", viewer + "capacity.go", "margin = 1.0 / 16", "margin = 0.0"},
	{"capacity: a margin of one", "eight|ladder|steps", viewer + "capacity.go", "margin = 1.0 / 16", "margin = 1.0"},
	{"capacity: the longer mean alone", "eight|narrow|fading|falling|crowd", viewer + "capacity.go", "if short < fallen*long {", "if false && short < fallen*long {"},
	{"capacity: a sample counts for its own time", "eight|narrow|fading|falling|ladder|steps", viewer + "capacity.go", "gapShare = 1.0 / 16", "gapShare = 0.0"},
	{"capacity: a sample counts for all the time since the last", "eight|fading|steps", viewer + "capacity.go", "gapShare = 1.0 / 16", "gapShare = 1.0"},
	{"capacity: crowded transfers are samples", "eight|narrow|fading", viewer + "capacity.go", "crowded := float64(others) > float64(bytes)*few; crowded", "crowded := false; crowded"},
	{"capacity: crowded transfers are nothing", "eight|narrow|fading", viewer + "capacity.go", "if known == 0 {\n			return", "if true {\n			return"},
	{"freshness: off", "eight|narrow|ahead", viewer + "freshness.go", "return adaptive && f.off", "return false && f.off"},

	// Prefetch.
	{"prefetch: from 1 duration on", "ahead|ahead-narrow", prefetch, "leastDuration = 3", "leastDuration = 1"},
	{"prefetch: from 6 durations on", "ahead|ahead-narrow", prefetch, "leastDuration = 3", "leastDuration = 6"},
	{"prefetch: no bound of 60 s", "ahead|ahead-narrow", prefetch, "time > aheadUs", "time > 100*aheadUs"},
	{"prefetch: no first MB", "ahead|ahead-narrow", prefetch, "firstWaste    = 1 << 20", "firstWaste    = 0"},
	{"prefetch: 64 requests, half", "ahead", viewer + "ahead.go", "mostBehind  = 64", "mostBehind  = 32"},
	{"prefetch: 64 requests, twice", "ahead", viewer + "ahead.go", "mostBehind  = 64", "mostBehind  = 128"},
	{"prefetch: quiet after 30 s, half", "ahead", viewer + "ahead.go", "quietBehind = 30", "quietBehind = 15"},
	{"prefetch: quiet never", "ahead", viewer + "ahead.go", "quietBehind = 30", "quietBehind = 30000"},
	{"prefetch: holders unknown, too", "ahead", viewer + "ahead.go", "|| a.near(s) || a.peers.announced(s)", "|| true"},

	// The law's growth after 2 s.
	{"growth by 1/16 after 2 s: off", plain + "|rough", "internal/ledbat/ceiling.go", "ceilingFast  = 16 ", "ceilingFast  = 32 "},

	// Constants of the schedule.
	{"leastRate 65,536 B/s, half", plain + "|rough", peers, "leastRate  = 65_536", "leastRate  = 32_768"},
	{"leastRate 65,536 B/s, twice", plain + "|rough", peers, "leastRate  = 65_536", "leastRate  = 131_072"},
	{"leastPace 16,384 B/s, half", plain + "|rough", peers, "leastPace  = 16_384", "leastPace  = 8_192"},
	{"leastPace 16,384 B/s, twice", plain + "|rough", peers, "leastPace  = 16_384", "leastPace  = 32_768"},
	{"least stall 1 s, half", plain + "|rough", peers, "leastStall = 1_000_000", "leastStall = 500_000"},
	{"least stall 1 s, twice", plain + "|rough", peers, "leastStall = 1_000_000", "leastStall = 2_000_000"},
	{"probation 64 KiB, half", plain + "|rough", peers, "probation = 65_536", "probation = 32_768"},
	{"probation 64 KiB, twice", plain + "|rough", peers, "probation = 65_536", "probation = 131_072"},
	{"proving 4 peers, half", plain + "|rough", urgent, "mostProving = 4", "mostProving = 2"},
	{"proving 4 peers, twice", plain + "|rough", urgent, "mostProving = 4", "mostProving = 8"},
	{"urgent 1500 per mille, half", plain + "|narrow", input, "UrgentPermille: 1500", "UrgentPermille: 750"},
	{"urgent 1500 per mille, twice", plain + "|narrow", input, "UrgentPermille: 1500", "UrgentPermille: 3000"},
	{"window: a quarter of the duration, half", plain + "|narrow", segment, "s.DurationUs/4+3*s.OriginUs", "s.DurationUs/8+3*s.OriginUs"},
	{"window: a quarter of the duration, twice", plain + "|narrow", segment, "s.DurationUs/4+3*s.OriginUs", "s.DurationUs/2+3*s.OriginUs"},
	{"window: 3 times the origin, half", plain + "|narrow", segment, "s.DurationUs/4+3*s.OriginUs", "s.DurationUs/4+s.OriginUs*3/2"},
	{"window: 3 times the origin, twice", plain + "|narrow", segment, "s.DurationUs/4+3*s.OriginUs", "s.DurationUs/4+6*s.OriginUs"},
	{"race: 3/2 of the origin's time, half", plain, urgent, "s.OriginUs*3/2", "s.OriginUs*3/4"},
	{"race: 3/2 of the origin's time, twice", plain, urgent, "s.OriginUs*3/2", "s.OriginUs*3"},
	{"patience 1 s, half", plain + "|dying|dumb", input, " PatienceUs: 1_000_000", " PatienceUs: 500_000"},
	{"patience 1 s, twice", plain + "|dying|dumb", input, " PatienceUs: 1_000_000", " PatienceUs: 2_000_000"},
	{"cert_patience 2 s, half", plain + "|rough|dying|dumb", input, "CertPatienceUs: 2_000_000", "CertPatienceUs: 1_000_000"},
	{"cert_patience 2 s, twice", plain + "|rough|dying|dumb", input, "CertPatienceUs: 2_000_000", "CertPatienceUs: 4_000_000"},
	{"link_patience 1.5 s, half", plain + "|rough|dying|dumb", input, "LinkPatienceUs: 1_500_000", "LinkPatienceUs: 750_000"},
	{"link_patience 1.5 s, twice", plain + "|rough|dying|dumb", input, "LinkPatienceUs: 1_500_000", "LinkPatienceUs: 3_000_000"},
	{"piece_cap 128, half", plain, input, "PieceCap: 128", "PieceCap: 64"},
	{"piece_cap 128, twice", plain, input, "PieceCap: 128", "PieceCap: 256"},
	{"peer_cap 512 KiB, half", plain, input, "PeerCap: 524_288", "PeerCap: 262_144"},
	{"peer_cap 512 KiB, twice", plain, input, "PeerCap: 524_288", "PeerCap: 1_048_576"},
	{"seed_cap 128 KiB, half", plain, input, "SeedCap: 131_072", "SeedCap: 65_536"},
	{"seed_cap 128 KiB, twice", plain, input, "SeedCap: 131_072", "SeedCap: 262_144"},
	{"max_wait 2 s, half", plain + "|rough|dying|dumb", input, "MaxWaitUs: 2_000_000", "MaxWaitUs: 1_000_000"},
	{"max_wait 2 s, twice", plain + "|rough|dying|dumb", input, "MaxWaitUs: 2_000_000", "MaxWaitUs: 4_000_000"},
	{"usable: 4 s of the rate, half", plain, peers, "4*p.Rate)", "2*p.Rate)"},
	{"usable: 4 s of the rate, twice", plain, peers, "4*p.Rate)", "8*p.Rate)"},

	// Constants around it.
	{"stall pause 2 s, half", "rough", viewer + "patience.go", "stallPause   = 2 * time.Second", "stallPause   = time.Second"},
	{"stall pause 2 s, twice", "rough", viewer + "patience.go", "stallPause   = 2 * time.Second", "stallPause   = 4 * time.Second"},
	{"late share 10, half", plain + "|rough", viewer + "patience.go", "lateShare = 10", "lateShare = 5"},
	{"late share 10, twice", plain + "|rough", viewer + "patience.go", "lateShare = 10", "lateShare = 20"},
	{"prompt pieces 4, half", plain + "|rough", viewer + "patience.go", "promptPieces = 4", "promptPieces = 2"},
	{"prompt pieces 4, twice", plain + "|rough", viewer + "patience.go", "promptPieces = 4", "promptPieces = 8"},
	{"announce every 50 ms, half", plain, viewer + "announcer.go", "announceEvery = 50", "announceEvery = 25"},
	{"announce every 50 ms, twice", plain, viewer + "announcer.go", "announceEvery = 50", "announceEvery = 100"},
	{"rate: weight 3/10, half", plain, meter, "(7*m.burst + 3*sample) / 10", "(17*m.burst + 3*sample) / 20"},
	{"rate: weight 3/10, twice", plain, meter, "(7*m.burst + 3*sample) / 10", "(4*m.burst + 6*sample) / 10"},
	{"rate: samples of 50 ms, half", plain, meter, "rateTime  = 50", "rateTime  = 25"},
	{"rate: samples of 50 ms, twice", plain, meter, "rateTime  = 50", "rateTime  = 100"},
	{"rate: samples of 128 KiB, none", plain, meter, "elapsed >= least || m.bytes >= rateBytes && elapsed >= time.Microsecond", "elapsed >= least"},
	{"rate: mean of 1 s, half", plain, meter, "meanLeast = time.Second", "meanLeast = time.Second / 2"},
	{"rate: mean of 1 s, twice", plain, meter, "meanLeast = time.Second", "meanLeast = 2 * time.Second"},
	{"rate: mean of 4 s, half", plain, meter, "meanMost  = 4", "meanMost  = 2"},
	{"rate: mean of 4 s, twice", plain, meter, "meanMost  = 4", "meanMost  = 8"},
	{"capacity: half-lives 3 and 9 s, half", "eight|narrow|fading", viewer + "capacity.go", "halfLives = [2]float64{3, 9}", "halfLives = [2]float64{1.5, 4.5}"},
	{"capacity: half-lives 3 and 9 s, twice", "eight|narrow|fading", viewer + "capacity.go", "halfLives = [2]float64{3, 9}", "halfLives = [2]float64{6, 18}"},
	{"capacity: fallen 0.8, half", "eight|narrow|fading", viewer + "capacity.go", "fallen = 0.8", "fallen = 0.4"},
	{"capacity: slack 1.25, half", "eight|narrow|fading", viewer + "capacity.go", "slack = 1.25", "slack = 1.125"},
	{"capacity: slack 1.25, twice", "eight|narrow|fading", viewer + "capacity.go", "slack = 1.25", "slack = 1.5"},
	{"capacity: few 1/16, half", "eight|narrow|fading", viewer + "capacity.go", "few = 1.0 / 16", "few = 1.0 / 32"},
	{"capacity: few 1/16, twice", "eight|narrow|fading", viewer + "capacity.go", "few = 1.0 / 16", "few = 1.0 / 8"},
	{"capacity: least sample 64 KiB, twice", "eight|narrow|fading", viewer + "capacity.go", "leastSample = 65_536", "leastSample = 131_072"},
	{"capacity: answer's weight 1/4, none", "eight|narrow|fading", viewer + "line.go", "(3*l.answer + max(d, 0)) / 4", "max(d, 0)"},
}

// dice is a row with other IDs of viewers, so that other peers come first where peers are equal.
func dice(n int, id string) row {
	return row{fmt.Sprintf("%s: other dice, %d", nothing, n), everywhere, viewer + "actors_test.go", "s.id = signal.ID{t.next, 0xaa}", "s.id = signal.ID{t.next, " + id + "}"}
}
