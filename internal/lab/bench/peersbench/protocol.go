package peersbench

import (
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench/pairing"
)

// roleEnd is the only role: one end of all links of a measurement.
const roleEnd = "end"

// The kinds of end that a child can be.
const (
	kindLink = "ours"  // ours: rtclink, the upload queue, downloads and the check of every piece
	kindBare = "pion"  // data channels as pion comes
	kindTune = "tuned" // data channels with what pion offers
	kindPage = "page"  // ours in a browser: the library's link, uploads, downloads and check of every piece
	kindFile = "plain" // data channels in a browser with nothing around them
)

// setup is the first message to a child.
type setup struct {
	Kind     string `json:"kind"`
	Firefox  bool   `json:"firefox,omitempty"` // of an end in a browser: otherwise it is Chromium
	Name     int    `json:"name"`              // of the end: 0 fetches and offers links, 1 and above serve
	Addr     string `json:"addr"`
	Exchange string `json:"exchange"` // where the ends signal
	Channels int    `json:"channels"` // data channels of a link
}

// fetches says whether the end is the one that offers links and asks for bytes; it is called the client in the paper.
func (s setup) fetches() bool { return s.Name == client }

// client is the name of the end that fetches.
const client = 0

// message is every other message between the bench and an end.
type message struct {
	Type   string  `json:"type"` // to an end: begin, drop, job, collect; from it: ready, moment, done, collected, failed
	Link   int     `json:"link"`
	To     int     `json:"to,omitempty"` // begin: the end that serves the link
	Job    *job    `json:"job,omitempty"`
	Moment *moment `json:"moment,omitempty"`
	Done   *done   `json:"done,omitempty"`
	Why    string  `json:"why,omitempty"`
}

// moment is when something happened to a link, Unix time in ms: one machine has one clock.
type moment struct {
	What string  `json:"what"` // begun, answered, open, usable
	At   float64 `json:"at"`
}

// The moments of a link: the end that offers begins and gets the answer; channels open at both, and may be asked on.
const (
	begun    = "begun"
	answered = "answered"
	opened   = "open"
	usable   = "usable"
)

// largestItem is the most that one request asks for, bytes: the paper's file of the runs under load.
const largestItem = 1_000_000

func now() float64 { return float64(time.Now().UnixNano()) / float64(time.Millisecond) }

// job is what the client fetches: so many bytes in items of one size, the last of which may be smaller, over several lanes.
type job struct {
	Lanes []lane `json:"lanes"`
	Bytes int    `json:"bytes"` // of all items
	Item  int    `json:"item"`  // bytes
	Ahead int    `json:"ahead"` // items that a lane has asked for and not got; 1 is one after the other
}

// lane is one way for items: a link, and of links without anything of ours a channel.
type lane struct {
	Link    int `json:"link"`
	Channel int `json:"channel"`
}

// items is how many there are.
func (j job) items() int { return (j.Bytes + j.Item - 1) / j.Item }

// size of an item, bytes.
func (j job) size(item int) int { return min(j.Item, j.Bytes-item*j.Item) }

// done is how a job went.
type done struct {
	MS float64 `json:"ms"` // from the first request to the last byte, verified where the end verifies
}

// envelope is a signal on its way between two ends.
type envelope struct {
	Name   int             `json:"name"` // of the end that says it
	To     int             `json:"to"`
	Link   int             `json:"link"`
	Signal *pairing.Signal `json:"signal,omitempty"` // nil: the end says its name
}
