// Package peersbench is `leeway-lab bench peers`: the experiments of Heikkinen et al. (Performance Evaluation of Distributed Data
// Delivery on Mobile Devices Using WebRTC, 2015) on emulated lines: what it takes to establish a link and to keep it, and how bytes
// are best spread over connections and channels. Ends are ours, pion with nothing around it, and pages in browsers.
package peersbench

import (
	"context"
	"os"
	"strconv"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

const benchName = "peers"

// Bench is the bench.
var Bench = bench.Bench{
	Name:  benchName,
	About: "What links between peers cost and how bytes are best spread over them, beside the figures of Heikkinen et al.",
	Roles: map[string]bench.Role{roleEnd: runEnd},
}

func init() { Bench.Cases = cases() } // Bench's own functions name it

// What is measured, client first.
var (
	oursOurs = kinds{name: "ours", client: kindLink, server: kindLink, about: "Ours to ours"}
	barePion = kinds{name: "pion", client: kindBare, server: kindBare, about: "Pion to pion, with nothing of ours around it"}
)

// iterationsVariable is how often each thing is done in a run, instead of a number that takes about a minute; the paper's are 100
// links and 30 transfers.
const iterationsVariable = "LEEWAY_PEERS_ITERATIONS"

// Iterations where the variable says none.
const (
	establishIterations = 10
	transferIterations  = 5
)

func iterations(otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(iterationsVariable)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// mostServers is how many ends serve at a time: those of a browser's are fewer on one machine.
const mostServers = 10

func cases() []bench.Case {
	var list []bench.Case
	for _, k := range []kinds{oursOurs, barePion} {
		for _, w := range ways {
			list = append(list, establishing(k, w))
		}
		list = append(list, weighing(k))
		for _, rate := range rates {
			list = append(list, transferring(k, rate, mostServers))
		}
	}
	return list
}

// plan is how many data channels a link has where their number is not what is tried.
func (k kinds) plan() int {
	if k.ours() {
		return peer.DefaultPlan.Data
	}
	return 1
}

// inBrowser says whether an end is a page.
func (k kinds) inBrowser() bool {
	return k.client == kindPage || k.client == kindFile || k.server == kindPage || k.server == kindFile
}

// needs says what the machine lacks for the pair.
func (k kinds) needs() func(context.Context) error { return nil }
