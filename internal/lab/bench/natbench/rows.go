package natbench

import (
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// edge is what stands between a viewer and the network.
type edge string

const (
	public     edge = "public" // an address of its own
	cone       edge = "cone"
	restricted edge = "restricted"
	symmetric  edge = "symmetric"
	blocked    edge = "blocked" // a port-restricted NAT that lets no UDP through
	six        edge = "ipv6"    // a public IPv6 address and nothing else
)

var nats = map[edge]netlab.NAT{cone: netlab.FullCone, restricted: netlab.PortRestricted, symmetric: netlab.Symmetric, blocked: netlab.PortRestricted}

// way is how a newcomer is served, best first.
type way string

const (
	direct     way = "direct"      // linked to the other viewer
	byRelay    way = "relay"       // linked to it by way of the relay
	seedOnly   way = "seed only"   // linked to the seed alone
	originOnly way = "origin only" // no link at all
)

// result is a way, and the reason code why there is no better one: of a link that never opened, or of delivery that is off.
type result struct {
	way    way
	reason string
}

func (r result) String() string {
	if r.reason == "" {
		return string(r.way)
	}
	return string(r.way) + " (" + r.reason + ")"
}

// ends says which of a pair are Chromium with a user's flags; the others are headless.
type ends string

const (
	headlessBoth     ends = ""
	chromiumFirst    ends = "chromium-headless"
	chromiumNewcomer ends = "headless-chromium"
	chromiumBoth     ends = "chromium"
)

func (e ends) first() bool { return e == chromiumFirst || e == chromiumBoth }

func (e ends) newcomer() bool { return e == chromiumNewcomer || e == chromiumBoth }

// row is one pair.
type row struct {
	a, b     edge // of the viewer that was there before, and of the newcomer, which offers
	together bool // both behind one gateway
	hairpin  bool
	isolated bool // they do not reach each other on their own network
	plain    bool // by a tracker that names no relay
	hidden   bool // viewers show each other no address (relay-only)
	guarded  bool // browsers keep the page from the viewer's own network, as they do with a public one
	forgets  bool // the newcomer's NAT loses its mappings in mid-play
	by       ends
	moves    edge // where the newcomer goes in mid-play; empty: nowhere
	want     result
	watch    time.Duration // 0: until a link that does not open has been given up
}

// watchFor is longer than an attempt to link may take, with the time before the first picture, in which no viewer joins.
const watchFor = 16 * time.Second

// pageTakes is what a page takes to be there, beside that.
const pageTakes = 4 * time.Second

// weight is for how many rows of headless viewers it counts: browsers take more of the machine.
func (r row) weight() int {
	if r.by == headlessBoth {
		return 1
	}
	return 2
}

// patience is how long one of its viewers may take for what it does at once on a machine that has nothing else to do.
func (r row) patience() time.Duration { return time.Duration(r.weight()) * patience }

// after is how long its newcomer is watched once its NAT has lost the mappings: until a direct link would have been given up. An
// allocation at a relay is bound to the address that asked for it (RFC 8656, 3), so that a relayed link may end with the mapping, and
// a pair that has just met is left alone for a minute.
func (r row) after() time.Duration {
	if r.want == relays {
		return afterwards + 80*time.Second
	}
	return afterwards
}

// length is how long its newcomer is watched.
func (r row) length() time.Duration {
	length := max(r.watch, watchFor)
	if r.by.newcomer() {
		length += pageTakes
	}
	return length
}

func (r row) name() string {
	parts := []string{string(r.a) + "-" + string(r.b)}
	for _, p := range []struct {
		is   bool
		name string
	}{{r.together, "together"}, {r.isolated, "isolated"}, {r.hairpin, "hairpin"}, {r.plain, "plain"}, {r.hidden, "relay-only"}, {r.guarded, "public-page"}, {r.forgets, "rebinding"}, {r.by != headlessBoth, string(r.by)}} {
		if p.is {
			parts = append(parts, p.name)
		}
	}
	return strings.Join(parts, "/")
}

var (
	meets  = result{way: direct}
	relays = result{way: byRelay}
	bySeed = result{seedOnly, "timeout"}
	alone  = result{originOnly, "udp-blocked"}
)

// rows is the table.
var rows = []row{
	{a: public, b: public, want: meets},
	{a: public, b: cone, want: meets},
	{a: public, b: restricted, want: meets},
	{a: public, b: symmetric, want: meets},
	{a: symmetric, b: public, want: meets},

	{a: cone, b: cone, want: meets},
	{a: cone, b: restricted, want: meets},
	{a: restricted, b: cone, want: meets},
	{a: cone, b: symmetric, want: meets},
	{a: symmetric, b: cone, want: meets},
	{a: restricted, b: restricted, want: meets},
	{a: restricted, b: symmetric, want: relays},
	{a: symmetric, b: restricted, want: relays},
	{a: symmetric, b: symmetric, want: relays},
	{a: restricted, b: symmetric, plain: true, want: bySeed},
	{a: symmetric, b: restricted, plain: true, want: bySeed},
	{a: symmetric, b: symmetric, plain: true, want: bySeed},

	// Two viewers behind one public address.
	{a: cone, b: cone, together: true, want: meets},
	{a: restricted, b: restricted, together: true, want: meets},
	{a: symmetric, b: symmetric, together: true, want: meets},
	{a: cone, b: cone, together: true, isolated: true, hairpin: true, want: meets},
	{a: restricted, b: restricted, together: true, isolated: true, hairpin: true, want: meets},
	{a: symmetric, b: symmetric, together: true, isolated: true, hairpin: true, want: relays},
	{a: cone, b: cone, together: true, isolated: true, want: relays},
	{a: restricted, b: restricted, together: true, isolated: true, want: relays},
	{a: symmetric, b: symmetric, together: true, isolated: true, want: relays},
	{a: cone, b: cone, together: true, isolated: true, plain: true, want: bySeed},

	// No UDP: the relay by TCP, or the origin.
	{a: public, b: blocked, want: relays},
	{a: blocked, b: blocked, want: relays},
	{a: public, b: blocked, plain: true, want: alone},
	{a: blocked, b: blocked, plain: true, want: alone},

	// IPv6 and nothing else.
	{a: six, b: six, want: meets},
	// Pion's client asks a relay for an address of the family by which it reaches it, so that these two have none in common.
	{a: restricted, b: six, want: bySeed},
	{a: restricted, b: six, plain: true, want: bySeed},
}

// browserRows are those with Chromium. Its first attempts and its timers are its own; what is between is the same.
var browserRows = []row{
	{a: cone, b: cone, by: chromiumBoth, want: meets},
	{a: cone, b: cone, by: chromiumFirst, want: meets},
	{a: cone, b: cone, by: chromiumNewcomer, want: meets},
	{a: restricted, b: restricted, by: chromiumBoth, want: meets},
	{a: public, b: symmetric, by: chromiumNewcomer, want: meets},
	{a: restricted, b: symmetric, plain: true, by: chromiumBoth, want: bySeed},
	{a: symmetric, b: symmetric, by: chromiumBoth, want: relays},
	{a: symmetric, b: symmetric, by: chromiumFirst, want: relays},
	{a: symmetric, b: symmetric, by: chromiumNewcomer, want: relays},

	{a: public, b: blocked, by: chromiumNewcomer, want: relays},
	{a: blocked, b: blocked, by: chromiumBoth, want: relays},
	{a: blocked, b: blocked, plain: true, by: chromiumBoth, want: alone},

	{a: six, b: six, by: chromiumBoth, want: meets},
	{a: six, b: six, by: chromiumNewcomer, want: meets},

	// Behind one public address. Browsers hide their own addresses behind names that are heard on one network alone.
	{a: restricted, b: restricted, together: true, by: chromiumBoth, want: meets},
	{a: restricted, b: restricted, together: true, by: chromiumNewcomer, want: meets},
	{a: restricted, b: restricted, together: true, isolated: true, hairpin: true, by: chromiumBoth, want: meets},
	{a: restricted, b: restricted, together: true, isolated: true, by: chromiumBoth, want: relays},

	// The same with a public page, which the browser keeps from the viewer's own network.
	{a: restricted, b: restricted, together: true, guarded: true, by: chromiumBoth, want: relays},
	{a: restricted, b: restricted, together: true, guarded: true, by: chromiumNewcomer, want: relays},
	{a: restricted, b: restricted, together: true, hairpin: true, guarded: true, by: chromiumBoth, want: meets},
	{a: restricted, b: restricted, together: true, plain: true, guarded: true, by: chromiumBoth, want: bySeed},

	{a: public, b: public, hidden: true, by: chromiumBoth, want: relays},
	{a: public, b: public, hidden: true, by: chromiumNewcomer, want: relays},

	{a: public, b: symmetric, forgets: true, by: chromiumBoth, want: meets},
	{a: public, b: symmetric, forgets: true, by: chromiumNewcomer, want: meets},
	{a: symmetric, b: symmetric, forgets: true, by: chromiumBoth, want: relays},
}
