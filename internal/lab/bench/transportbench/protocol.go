package transportbench

import "github.com/leeway-video/leeway/internal/lab/bench/pairing"

// setup is the first message to a child.
type setup struct {
	Kind  kind   `json:"kind"`
	Send  bool   `json:"send"`
	Addr  string `json:"addr"`  // of this end
	Links int    `json:"links"` // that a receiver offers
	Page  page   `json:"page"`
	Paced bool   `json:"paced"` // the sender is a browser: its foreground comes under the controller, too
}

// page is whether an end is in a browser.
type page string

// The kinds of page.
const (
	noPage      page = ""        // the end is a process of ours
	visiblePage page = "visible" // a Chromium, whose only tab it is
	hiddenPage  page = "hidden"  // a Chromium with another tab before it
	sharedPage  page = "shared"  // the same, and the other tab is of the same site, so that the line is divided
	firefoxPage page = "firefox" // a Firefox with another tab before it
)

// The types of message.
const (
	saySignal = "signal"
	sayOpen   = "open"  // from a child: this end of the link is open
	sayStart  = "start" // to those that begin: senders, or receivers that ask
	sayBurst  = "burst" // to a receiver: ask for a foreground segment
	sayTook   = "took"  // from a receiver: it is here
	sayState  = "state" // from a background sender, every step
)

// message is every other message, either way.
type message struct {
	Type   string   `json:"type"`
	Link   int      `json:"link,omitempty"`
	Signal *signal  `json:"signal,omitempty"`
	Bytes  int      `json:"bytes,omitempty"`
	Took   *arrival `json:"took,omitempty"`
	State  *state   `json:"state,omitempty"`
}

// signal is what one end of a link tells the other before they are linked.
type signal = pairing.Signal
