package main

const (
	outbox  = "internal/cluster/stream.go"
	streams = "internal/stream/stream.go"
	buses   = "clean|ocean|lossy|break|pause|outage|far|full|restart"
)

// streaming is the acknowledged messages between replicas.
var streaming = suite{
	name: "stream", folder: "internal/stream", benchmark: "StreamElsewhere",
	figures: []figure{
		{"arrived-%", "arrived %", 0.05},
		{"ms", "median ms", 3},
		{"ms-p99", "p99 ms", 20},
		{"said/message", "said/message", 0.02},
		{"acks/message", "acks/message", 0.02},
		{"twice", "twice", 0.5},
		{"out-of-order", "out of order", 0.5},
		{"wrongly-given-up", "given up and came", 0.5},
	},
	rows: []row{
		{asItIs, buses, "", "", ""},
		{nothing + ": other dice, 1", buses, "internal/stream/elsewhere_test.go", "rand.NewPCG(seed, 77)", "rand.NewPCG(seed, 78)"},
		{nothing + ": other dice, 2", buses, "internal/stream/elsewhere_test.go", "rand.NewPCG(seed, 77)", "rand.NewPCG(seed, 79)"},
		{"not said again", buses, outbox, "if !can || len(o.kept) == 0 || now.Before(o.again) {", "if true {"},
		{"not said again while it may be on its way: off", buses, outbox, "if now.Sub(k.at) >= firstAgain {", "if true {"},
		{"doubled, at most 1.2 s", buses, outbox, "o.wait *= 2", "o.wait = min(2*o.wait, 1200*time.Millisecond)"},
		{"said again after 300 ms, not doubled", buses, outbox, "o.wait *= 2", "o.wait *= 1"},
		{"first again 300 ms, half", buses, outbox, "firstAgain = 300", "firstAgain = 150"},
		{"first again 300 ms, twice", buses, outbox, "firstAgain = 300", "firstAgain = 600"},
		{"given up after 5 s, half", buses, outbox, "GiveUp = 5 * time.Second", "GiveUp = 2500 * time.Millisecond"},
		{"given up after 5 s, twice", buses, outbox, "GiveUp = 5 * time.Second", "GiveUp = 10 * time.Second"},
		{"at most 1,024 kept, an eighth", buses, outbox, "maxKept    = 1024", "maxKept    = 128"},
		{"at most 1,024 kept, twice", buses, outbox, "maxKept    = 1024", "maxKept    = 2048"},
		{"each number once: off", buses, outbox, "if n < i.next {\n		return nil", "if n < i.next {\n		return []M{m}"},
		{"base: off", buses, outbox, "if i.next < base {", "if false {"},
		{"an acknowledgement begins the time anew: off", buses, outbox, "	o.drop(n)\n	o.wait = firstAgain\n	o.again = now.Add(o.wait)\n}", "	o.drop(n)\n}"},
		{"said again only while the bus is there: off", buses, outbox, "if !can || len(o.kept)", "if len(o.kept)"},
		{"acknowledgements every 20 ms, half", buses, streams, "Step = 20", "Step = 10"},
		{"acknowledgements every 20 ms, twice", buses, streams, "Step = 20", "Step = 40"},
		{"acknowledgements wait for the bus: off", buses, streams, "case i.owed && connected:", "case i.owed:"},
		{"acknowledgements are given up: off", buses, streams, "i.owed = false\n		}", "i.owed = i.owed\n		}"},
	},
}
