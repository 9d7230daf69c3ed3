// Package peersbench is `leeway-lab bench peers`: the experiments of Heikkinen et al. (Performance Evaluation of Distributed Data
// Delivery on Mobile Devices Using WebRTC, 2015) on emulated lines: what it takes to establish a link and to keep it, and how bytes
// are best spread over connections and channels. Ends are ours, pion with nothing around it, and pages in browsers.
package peersbench

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
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
	// The same with browsers, in which both ends are the library's.
	browsers = []kinds{
		{name: "chromium-chromium", client: kindPage, server: kindPage, about: "The library in Chromium to the same"},
		{name: "chromium-ours", client: kindPage, server: kindLink, about: "The library in Chromium to ours in Go"},
		{name: "ours-chromium", client: kindLink, server: kindPage, about: "Ours in Go to the library in Chromium"},
		{name: "firefox-chromium", client: kindPage, server: kindPage, clientFirefox: true, about: "The library in Firefox to the same in Chromium"},
		{name: "chromium-firefox", client: kindPage, server: kindPage, serverFirefox: true, about: "The library in Chromium to the same in Firefox"},
		{name: "firefox-firefox", client: kindPage, server: kindPage, clientFirefox: true, serverFirefox: true, about: "The library in Firefox to the same"},
		{name: "firefox-ours", client: kindPage, server: kindLink, clientFirefox: true, about: "The library in Firefox to ours in Go"},
	}
	// Data channels in browsers with nothing around them.
	plain = []kinds{
		{name: "chromium-plain", client: kindFile, server: kindFile, about: "Data channels of Chromium to Chromium, with nothing of ours around them"},
		{name: "firefox-plain", client: kindFile, server: kindFile, clientFirefox: true, serverFirefox: true, about: "Data channels of Firefox to Firefox, with nothing of ours around them"},
	}
	barePion = kinds{name: "pion", client: kindBare, server: kindBare, about: "Pion to pion, with nothing of ours around it"}
)

// iterationsVariable says how often a run does each thing. Without it a run takes about a minute. The paper made 100 links and 30 transfers.
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

// How many ends serve at a time: those in browsers are fewer on one machine.
const (
	mostServers  = 10
	mostBrowsers = 2
)

func cases() []bench.Case {
	var list []bench.Case
	for _, k := range []kinds{oursOurs, barePion} {
		for _, w := range ways {
			list = append(list, establishing(k, w))
		}
		list = append(list, weighing(k))
		for _, rate := range rates {
			list = append(list, transferring(k, rate, mostServers), loading(k, rate))
		}
	}
	list = append(list, idles()...)
	for _, n := range []int{1, 10, 100} {
		list = append(list, idling(barePion, n))
	}
	for _, k := range slices.Concat(browsers, plain) {
		if k.ours() {
			for _, w := range ways {
				list = append(list, establishing(k, w))
			}
			for _, n := range []int{1, 10, 100} {
				list = append(list, idling(k, n))
			}
		}
		list = append(list, weighing(k))
		most := mostBrowsers
		if !isPage(k.server) {
			most = mostServers
		}
		for _, rate := range rates {
			list = append(list, transferring(k, rate, most))
			if k.ours() || !isPage(k.server) {
				list = append(list, loading(k, rate))
			}
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
func (k kinds) needs() func(context.Context) error {
	if !k.inBrowser() {
		return nil
	}
	return func(ctx context.Context) error {
		var lack error
		for _, end := range []struct {
			kind    string
			firefox bool
		}{{k.client, k.clientFirefox}, {k.server, k.serverFirefox}} {
			switch {
			case !isPage(end.kind):
			case end.firefox:
				lack = errors.Join(lack, demopage.MissingFirefoxEnd(ctx))
			default:
				lack = errors.Join(lack, demopage.MissingEnd(ctx))
			}
		}
		return lack
	}
}

func isPage(kind string) bool { return kind == kindPage || kind == kindFile }
