package transferbench

import "github.com/leeway-video/leeway/internal/transfer"

// The kinds of path end that a child can be.
const (
	kindLink     = "link"         // ours: store, upload queue, rtclink, verification
	kindLane     = "link-lane"    // the same in the background lane
	kindDefault  = "pion-default" // a bare data channel as pion comes
	kindTuned    = "pion-tuned"   // a bare data channel with what pion offers
	kindTCP      = "tcp"          // kernel TCP, CUBIC
	kindPage     = "page"         // ours in a browser: the library's link, uploads, downloads and verification
	kindPageLaw  = "page-law"     // the same under the controller of the background, in the foreground as a viewer sends it
	kindPageLane = "page-lane"    // the same in the background lane
	kindBare     = "page-bare"    // bare data channels in a browser
)

// setup is the first message to a child.
type setup struct {
	Kind     string `json:"kind"`
	Firefox  bool   `json:"firefox,omitempty"` // of an end in a browser: otherwise it is Chromium
	Send     bool   `json:"send"`
	Both     bool   `json:"both,omitempty"` // it asks, too: every end sends and receives
	Addr     string `json:"addr"`           // of this end
	Links    int    `json:"links"`          // that this end begins; 0 for senders
	Channels int    `json:"channels"`
	Message  int    `json:"message"` // bytes
	InFlight int    `json:"in_flight"`
	WarmMS   int    `json:"warm_ms"`
	RunMS    int    `json:"run_ms"`
}

// message is every other message, either way.
type message struct {
	Type   string  `json:"type"` // signal, open, go, report
	Link   int     `json:"link,omitempty"`
	Signal *signal `json:"signal,omitempty"`
	Report *report `json:"report,omitempty"`
}

// signal is what one end of a link tells the other before they are linked.
type signal struct {
	Description *transfer.Description `json:"description,omitempty"`
	Candidate   *transfer.Candidate   `json:"candidate,omitempty"`
	Address     string                `json:"address,omitempty"` // TCP
}

// report is what an end measured between warm-up and end.
type report struct {
	Bytes   int64              `json:"bytes"`             // payload that arrived, verified where the kind verifies
	Seconds float64            `json:"seconds"`           // of its own clock
	CPU     float64            `json:"cpu"`               // seconds, user and system
	Wakes   float64            `json:"wakes,omitempty"`   // times that a thread waited, of an end in other processes
	Silence float64            `json:"silence"`           // seconds: the longest time in which nothing arrived, from the first byte on
	Buffers [2]int             `json:"buffers"`           // what the kernel gave, read and write; 0 where it is not known
	Threads map[string]float64 `json:"threads,omitempty"` // seconds by name, of an end in other processes
	Task    float64            `json:"task,omitempty"`    // ms: the longest task of a page's thread, if one took 50 ms and more
}
