// Package transportbench is `leeway-lab bench transport`: the background lane beside foreign traffic on emulated lines, with
// outside witnesses only. The competitor is the kernel's TCP, the queue is measured by a third party's round trips through
// the bottleneck, and shares are counted behind it. A bare data channel and RFC 6817's controller run in the same call.
package transportbench

import (
	"github.com/leeway-video/leeway/internal/lab/bench"
)

const roleEnd = "end"

// Bench is the bench.
var Bench = bench.Bench{
	Name:  "transport",
	About: "The background lane beside other traffic: what it takes alone, what it leaves to others, the queue that it makes.",
	Roles: map[string]bench.Role{roleEnd: end},
	Sets:  sets,
}

func init() { Bench.Cases = cases() } // Bench's own functions name it
