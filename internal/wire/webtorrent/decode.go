package webtorrent

import "bytes"

// Decode reads a client's message into r. The error is always a *MalformedError; r then still holds what is needed to answer
// it: InfoHash, and a Kind that tells announce from scrape, as far as they could be read.
func Decode(b []byte, r *Request) error {
	*r = Request{Offers: r.Offers[:0], Hashes: r.Hashes[:0]}
	d := requestDecoder{scanner: scanner{b: b}, r: r}
	if len(b) > MaxMessage {
		d.fail("", "is too long")
	} else if d.peek() != '{' {
		d.wrong("", "is not an object")
	} else if d.object(d.member) && d.whole() {
		d.check()
	}
	if d.problem != nil {
		return d.problem
	}
	return nil
}

type requestDecoder struct {
	scanner
	r                            *Request
	peer, to, offer, answer, all bool // there and well-formed; all: a scrape's info_hash is a list
	empty                        bool // offers []
	most                         int  // numwant + 1; 0 when absent
}

func (d *requestDecoder) member(name []byte) bool {
	r := d.r
	switch string(name) {
	case "action":
		return d.action()
	case "info_hash":
		return d.hashes()
	case "peer_id":
		d.peer = true
		return d.id("peer_id", &r.PeerID)
	case "to_peer_id":
		if d.null() {
			return true
		}
		d.to = true
		return d.id("to_peer_id", &r.To)
	case "offer_id":
		if d.null() {
			return true
		}
		d.offer = true
		return d.id("offer_id", &r.OfferID)
	case "event":
		return d.event()
	case "left":
		n, there, ok := d.optionalNumber("left")
		r.Complete = there && zero(n)
		r.Partial = there && !r.Complete
		return ok
	case "numwant":
		n, there, ok := d.optionalNumber("numwant")
		if d.most = 0; there {
			d.most = 1 + count(n, MaxOffers)
		}
		return ok
	case "offers":
		return d.offers()
	case "answer":
		return d.answered()
	}
	return d.skip()
}

func (d *requestDecoder) action() bool {
	if d.peek() != '"' {
		return d.wrong("action", "is not a string")
	}
	name, ok := d.text()
	switch string(name) {
	case `"announce"`:
		d.r.Kind = Announce
	case `"scrape"`:
		d.r.Kind = Scrape
	default:
		return ok && d.fail("action", "is neither announce nor scrape")
	}
	return true
}

// hashes reads info_hash, which a scrape may have as a list or leave out.
func (d *requestDecoder) hashes() bool {
	r := d.r
	r.Hashes, r.HasHash, d.all = r.Hashes[:0], false, false
	if d.null() {
		return true
	}
	if d.peek() != '[' {
		r.HasHash = d.id("info_hash", &r.InfoHash)
		return r.HasHash
	}
	d.all = true
	return d.array(func() bool {
		if len(r.Hashes) == MaxScrape {
			return d.fail("info_hash", "has more than 64 entries")
		}
		r.Hashes = append(r.Hashes, ID{})
		return d.id("info_hash", &r.Hashes[len(r.Hashes)-1])
	})
}

func (d *requestDecoder) event() bool {
	d.r.Event = Periodic
	if d.null() {
		return true
	}
	if d.peek() != '"' {
		return d.wrong("event", "is not a string")
	}
	name, ok := d.text()
	for e, known := range eventNames {
		if known != "" && ok && string(name[1:len(name)-1]) == known {
			d.r.Event = Event(e)
		}
	}
	return ok
}

func (d *scanner) optionalNumber(field string) (n []byte, there, ok bool) {
	if d.null() {
		return nil, false, true
	}
	if c := d.peek(); c != '-' && (c < '0' || c > '9') {
		return nil, false, d.wrong(field, "is not a number")
	}
	n, ok = d.number()
	return n, ok, ok
}

func (d *requestDecoder) offers() bool {
	r := d.r
	r.Offers, d.empty = r.Offers[:0], false
	if d.null() {
		return true
	}
	if d.peek() != '[' {
		return d.wrong("offers", "is not a list")
	}
	d.empty = true
	return d.array(func() bool {
		d.empty = false
		if len(r.Offers) == MaxOffers {
			return d.skip()
		}
		if d.peek() != '{' {
			return d.wrong("offers", "holds something else than objects")
		}
		var o Offer
		named := false
		ok := d.object(func(name []byte) bool {
			switch string(name) {
			case "offer_id":
				named = true
				return d.id("offers.offer_id", &o.ID)
			case "offer":
				return d.description("offers.offer", "offer", &o.SDP)
			}
			return d.skip()
		})
		if ok && (!named || o.SDP == nil) {
			return d.fail("offers", "holds one without offer_id or offer")
		}
		r.Offers = append(r.Offers, o)
		return ok
	})
}

func (d *requestDecoder) answered() bool {
	if d.answer = false; d.null() {
		return true
	}
	d.answer = true
	return d.description("answer", "answer", &d.r.SDP)
}

// description reads an object of type and sdp.
func (s *scanner) description(field, kind string, sdp *SDP) bool {
	if s.peek() != '{' {
		return s.wrong(field, "is not an object")
	}
	*sdp = nil
	fits := false
	ok := s.object(func(name []byte) bool {
		switch known := string(name); known {
		case "type", "sdp":
			if s.peek() != '"' {
				return s.wrong(field, "has a type or an sdp that is not a string")
			}
			text, ok := s.text()
			if known == "type" {
				fits = ok && string(text[1:len(text)-1]) == kind
			} else {
				*sdp = text
			}
			return ok
		}
		return s.skip()
	})
	switch {
	case !ok:
		return false
	case !fits:
		return s.fail(field, "has another type, or none")
	case len(*sdp) < 3 || len(*sdp) > MaxSDP+2:
		return s.fail(field, "has no sdp, or one above 16,384 bytes")
	}
	return true
}

// check looks at the whole once all members are known.
func (d *requestDecoder) check() bool {
	r := d.r
	switch {
	case r.Kind == 0:
		return d.fail("action", "is missing")
	case r.Kind == Scrape:
		if r.HasHash {
			r.Hashes = append(r.Hashes, r.InfoHash)
		}
		r.Own = !r.HasHash && !d.all
		r.Offers, r.SDP = r.Offers[:0], nil
		return true
	case !r.HasHash:
		return d.fail("info_hash", "is missing")
	case !d.peer:
		return d.fail("peer_id", "is missing")
	}
	if !d.answer {
		r.SDP = nil
		r.Complete = r.Complete || r.Event == Completed
		r.Partial = r.Partial && !r.Complete
		r.Full = r.Event == Periodic && (d.empty || d.most == 1)
		if d.most > 0 {
			r.Offers = r.Offers[:min(len(r.Offers), d.most-1)]
		}
		return true
	}
	r.Kind, r.Offers = Answer, r.Offers[:0]
	switch {
	case !d.to:
		return d.fail("to_peer_id", "is missing")
	case !d.offer:
		return d.fail("offer_id", "is missing")
	}
	return true
}

// DecodeReply reads a tracker's message into r. The error is always a *MalformedError.
func DecodeReply(b []byte, r *Reply) error {
	*r = Reply{Files: r.Files[:0]}
	d := replyDecoder{scanner: scanner{b: b}, r: r}
	if d.peek() != '{' {
		d.wrong("", "is not an object")
	} else if d.object(d.member) && d.whole() {
		d.check()
	}
	if d.problem != nil {
		return d.problem
	}
	return nil
}

type replyDecoder struct {
	scanner
	r             *Reply
	action        []byte
	offer, answer SDP
	// There and well-formed.
	hash, peer, named, files, counted bool
}

func (d *replyDecoder) member(name []byte) bool {
	r := d.r
	switch string(name) {
	case "action":
		if d.peek() != '"' {
			return d.wrong("action", "is not a string")
		}
		text, ok := d.text()
		d.action = text
		return ok
	case "info_hash":
		if bytes.HasPrefix(d.b[d.at:], []byte(`""`)) { // of a failure that is about no swarm
			d.at += 2
			return true
		}
		d.hash = true
		return d.id("info_hash", &r.InfoHash)
	case "peer_id":
		d.peer = true
		return d.id("peer_id", &r.PeerID)
	case "offer_id":
		d.named = true
		return d.id("offer_id", &r.OfferID)
	case "offer":
		return d.description("offer", "offer", &d.offer)
	case "answer":
		return d.description("answer", "answer", &d.answer)
	case "interval":
		return d.figure("interval", &r.Interval)
	case "complete":
		d.counted = true
		return d.figure("complete", &r.Complete)
	case "incomplete":
		return d.figure("incomplete", &r.Incomplete)
	case "failure reason", "warning message":
		if d.peek() != '"' {
			return d.wrong("failure reason", "is not a string")
		}
		text, ok := d.text()
		r.Reason = text
		return ok
	case "files":
		d.files = true
		return d.scraped()
	}
	return d.skip()
}

func (s *scanner) figure(field string, v *int) bool {
	if c := s.peek(); c != '-' && (c < '0' || c > '9') {
		return s.wrong(field, "is not a number")
	}
	n, ok := s.number()
	if ok {
		*v = count(n, 1<<31-1)
	}
	return ok
}

func (d *replyDecoder) scraped() bool {
	r := d.r
	if d.peek() != '{' {
		return d.wrong("files", "is not an object")
	}
	return d.object(func(name []byte) bool {
		var f File
		if !f.InfoHash.read(name) {
			return d.fail("files", "has a name that is not 20 code points up to U+00FF")
		}
		if d.peek() != '{' {
			return d.wrong("files", "holds something else than objects")
		}
		ok := d.object(func(name []byte) bool {
			switch string(name) {
			case "complete":
				return d.figure("files.complete", &f.Complete)
			case "incomplete":
				return d.figure("files.incomplete", &f.Incomplete)
			case "downloaded":
				return d.figure("files.downloaded", &f.Downloaded)
			}
			return d.skip()
		})
		r.Files = append(r.Files, f)
		return ok
	})
}

func (d *replyDecoder) check() bool {
	r := d.r
	action := string(d.action)
	switch {
	case action != `"announce"` && action != `"scrape"`:
		return d.fail("action", "is neither announce nor scrape")
	case r.Reason != nil:
		r.Kind = Failure
	case action == `"scrape"`:
		r.Kind = Scraped
		return d.files || d.fail("files", "is missing")
	case !d.hash:
		return d.fail("info_hash", "is missing")
	case d.offer != nil || d.answer != nil:
		r.Kind, r.SDP = Offered, d.offer
		if d.offer == nil {
			r.Kind, r.SDP = Answered, d.answer
		}
		return d.peer && d.named || d.fail("", "lacks peer_id or offer_id")
	case !d.counted:
		return d.fail("", "is of no known kind")
	default:
		r.Kind = Ack
	}
	return true
}
