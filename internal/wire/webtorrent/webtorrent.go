// Package webtorrent is the codec of the WebTorrent tracker protocol (spec/webtorrent.md): JSON text messages between a
// client and a tracker.
//
// A tracker decodes tens of thousands of these a second, so nothing is built that is not needed: the decoder walks the bytes
// once, writes into a value that the caller keeps, and leaves every SDP where it is in the message, as the JSON string that
// it was checked to be. Encoders append to the caller's buffer. spec/vectors/webtorrent.json says what both must do.
package webtorrent

// Limits of spec/webtorrent.md.
const (
	MaxMessage = 65536 // bytes
	MaxOffers  = 10    // of one announce; those beyond are dropped
	MaxSDP     = 16384 // bytes as it stands in the message, without its quotes
	MaxScrape  = 64    // swarms in one scrape
)

// ID is an info_hash, a peer_id or an offer_id.
type ID [20]byte

// SDP is a session description as it stands in a message: a JSON string with its quotes.
type SDP []byte

// Offer is one of an announce.
type Offer struct {
	ID  ID
	SDP SDP
}

// Kind says what a message is.
type Kind uint8

// The kinds. Announce, Answer and Scrape are of clients; Ack, Offered, Answered, Scraped and Failure of trackers.
const (
	Announce Kind = iota + 1
	Answer
	Scrape
	Ack
	Offered
	Answered
	Scraped
	Failure
)

// Event is why a client announces itself.
type Event uint8

// The events. Periodic stands for none, for update and for unknown texts.
const (
	Periodic Event = iota
	Started
	Stopped
	Completed
)

var eventNames = [...]string{Started: "started", Stopped: "stopped", Completed: "completed"}

// Request is a message of a client. Decoding another one into it reuses its lists; SDPs point into the message.
type Request struct {
	Kind     Kind // Announce, Answer, Scrape; 0 when the action could not be read
	InfoHash ID   // announce, answer
	HasHash  bool // InfoHash could be read, also when the message is refused
	PeerID   ID

	Event    Event
	Complete bool // left is 0, or the event is completed
	Partial  bool // left is another number; with neither, the message does not say
	Full     bool // periodic, and says by numwant 0 or an empty list that it wants no peers
	Offers   []Offer

	To      ID // answer: the offerer
	OfferID ID
	SDP     SDP // of the answer

	Hashes []ID // scrape
	Own    bool // scrape: of the swarms that the socket is in
}

// Reply is a message of a tracker. Decoding another one into it reuses its list; texts point into the message.
type Reply struct {
	Kind                 Kind // Ack, Offered, Answered, Scraped, Failure
	InfoHash, PeerID     ID
	OfferID              ID
	Interval             int // seconds; of a failure: 0, or when to try again, which makes it a warning
	Complete, Incomplete int
	SDP                  SDP
	Reason               SDP // failure: a JSON string with its quotes
	Files                []File
}

// File is what a scrape says of one swarm.
type File struct {
	InfoHash                         ID
	Complete, Incomplete, Downloaded int
}
