package webtorrent

import (
	"slices"
	"sync/atomic"

	"github.com/leeway-video/leeway/internal/metric"
	wire "github.com/leeway-video/leeway/internal/wire/webtorrent"
)

// refusals are the codes of spec/webtorrent.md with the sentence that goes with each.
var refusals = []struct{ code, sentence string }{
	{"bad-message", ""}, // the problem found
	{"not-allowed", "This tracker does not serve this torrent."},
	{"peer-id-taken", "Another connection speaks for this peer_id."},
	{"not-introduced", "No such offer of that peer was passed on to this one."},
	{"too-many-swarms", "This connection is in as many swarms as one may be."},
	{"swarm-full", "There is no room for another peer."},
	{"rate-limited", "Too many messages."},
	{"gone", ""}, // not told
	{"busy", ""}, // not told
}

// messages are the kinds of message that are counted, by wire.Kind.
var messages = []string{
	wire.Announce: "announce", wire.Answer: "answer", wire.Scrape: "scrape", wire.Ack: "ack",
	wire.Offered: "offered", wire.Answered: "answered", wire.Scraped: "scraped", wire.Failure: "failure",
}

var (
	defSockets  = def(metric.Gauge, "connections", "Open sockets of the WebTorrent protocol")
	defSwarms   = def(metric.Gauge, "swarms", "Its swarms")
	defPeers    = def(metric.Gauge, "peers", "Members of those swarms")
	defMessages = def(metric.Counter, "messages_total", "Its messages", metric.Label{Name: "type", Values: slices.DeleteFunc(slices.Clone(messages), func(n string) bool { return n == "" })})
	defRefused  = def(metric.Counter, "refused_total", "Its messages that were not acted on", metric.Label{Name: "code", Values: codes()})
)

func def(kind metric.Kind, name, help string, labels ...metric.Label) *metric.Def {
	return &metric.Def{Name: "leeway_tracker_webtorrent_" + name, Help: help, Kind: kind, Labels: labels}
}

func codes() (all []string) {
	for _, r := range refusals {
		all = append(all, r.code)
	}
	return all
}

// Metrics lists what the room counts.
func Metrics() []*metric.Def {
	return []*metric.Def{defSockets, defSwarms, defPeers, defMessages, defRefused}
}

// counts are what the hot path counts.
type counts struct {
	messages [wire.Failure + 1]atomic.Int64
	refused  [9]atomic.Int64 // as refusals
}

// hand adds to the metrics what was counted since the last time.
func (c *counts) hand(to metric.Sink) {
	for kind, name := range messages {
		if n := c.messages[kind].Swap(0); n > 0 {
			to.Add(defMessages, float64(n), name)
		}
	}
	for i, r := range refusals {
		if n := c.refused[i].Swap(0); n > 0 {
			to.Add(defRefused, float64(n), r.code)
		}
	}
}
