package webtorrent

import "github.com/leeway-video/leeway/internal/wire/jsonscan"

// Decode reads a client's message into r. The error is always a *jsonscan.Problem; r then still holds what is needed to answer
// it: InfoHash, and a Kind that tells announce from scrape, as far as they could be read.
func Decode(b []byte, r *Request) error {
	*r = Request{Offers: r.Offers[:0], Hashes: r.Hashes[:0]}
	d := requestDecoder{Scanner: jsonscan.New(b), r: r}
	if len(b) > MaxMessage {
		d.Fail("", "is too long")
	} else if d.Document(d.member) {
		d.check()
	}
	return d.Err()
}

type requestDecoder struct {
	jsonscan.Scanner
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
		return r.PeerID.Scan(&d.Scanner, "peer_id")
	case "to_peer_id":
		if d.Null() {
			return true
		}
		d.to = true
		return r.To.Scan(&d.Scanner, "to_peer_id")
	case "offer_id":
		if d.Null() {
			return true
		}
		d.offer = true
		return r.OfferID.Scan(&d.Scanner, "offer_id")
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
			d.most = 1 + Count(n, MaxOffers)
		}
		return ok
	case "offers":
		return d.offers()
	case "answer":
		return d.answered()
	}
	return d.Skip()
}

func (d *requestDecoder) action() bool {
	if d.Peek() != '"' {
		return d.Wrong("action", "is not a string")
	}
	name, ok := d.Text()
	switch string(name) {
	case `"announce"`:
		d.r.Kind = Announce
	case `"scrape"`:
		d.r.Kind = Scrape
	default:
		return ok && d.Fail("action", "is neither announce nor scrape")
	}
	return true
}

// hashes reads info_hash, which a scrape may have as a list or leave out.
func (d *requestDecoder) hashes() bool {
	r := d.r
	r.Hashes, r.HasHash, d.all = r.Hashes[:0], false, false
	if d.Null() {
		return true
	}
	if d.Peek() != '[' {
		r.HasHash = r.InfoHash.Scan(&d.Scanner, "info_hash")
		return r.HasHash
	}
	d.all = true
	return d.Array(func() bool {
		if len(r.Hashes) == MaxScrape {
			return d.Fail("info_hash", "has more than 64 entries")
		}
		r.Hashes = append(r.Hashes, ID{})
		return r.Hashes[len(r.Hashes)-1].Scan(&d.Scanner, "info_hash")
	})
}

func (d *requestDecoder) event() bool {
	d.r.Event = Periodic
	if d.Null() {
		return true
	}
	if d.Peek() != '"' {
		return d.Wrong("event", "is not a string")
	}
	name, ok := d.Text()
	for e, known := range eventNames {
		if known != "" && ok && string(name[1:len(name)-1]) == known {
			d.r.Event = Event(e)
		}
	}
	return ok
}

func (d *requestDecoder) optionalNumber(field string) (n []byte, there, ok bool) {
	if d.Null() {
		return nil, false, true
	}
	if c := d.Peek(); c != '-' && (c < '0' || c > '9') {
		return nil, false, d.Wrong(field, "is not a number")
	}
	n, ok = d.Number()
	return n, ok, ok
}

func (d *requestDecoder) offers() bool {
	r := d.r
	r.Offers, d.empty = r.Offers[:0], false
	if d.Null() {
		return true
	}
	if d.Peek() != '[' {
		return d.Wrong("offers", "is not a list")
	}
	d.empty = true
	return d.Array(func() bool {
		d.empty = false
		if len(r.Offers) == MaxOffers {
			return d.Skip()
		}
		if d.Peek() != '{' {
			return d.Wrong("offers", "holds something else than objects")
		}
		var o Offer
		named := false
		ok := d.Object(func(name []byte) bool {
			switch string(name) {
			case "offer_id":
				named = true
				return o.ID.Scan(&d.Scanner, "offers.offer_id")
			case "offer":
				return o.SDP.Scan(&d.Scanner, "offers.offer", "offer")
			}
			return d.Skip()
		})
		if ok && (!named || o.SDP == nil) {
			return d.Fail("offers", "holds one without offer_id or offer")
		}
		r.Offers = append(r.Offers, o)
		return ok
	})
}

func (d *requestDecoder) answered() bool {
	if d.answer = false; d.Null() {
		return true
	}
	d.answer = true
	return d.r.SDP.Scan(&d.Scanner, "answer", "answer")
}

// Scan reads the object of type and sdp that is kind, an offer or an answer; field is what a problem names.
func (sdp *SDP) Scan(s *jsonscan.Scanner, field, kind string) bool {
	if s.Peek() != '{' {
		return s.Wrong(field, "is not an object")
	}
	*sdp = nil
	fits := false
	ok := s.Object(func(name []byte) bool {
		switch known := string(name); known {
		case "type", "sdp":
			if s.Peek() != '"' {
				return s.Wrong(field, "has a type or an sdp that is not a string")
			}
			text, ok := s.Text()
			if known == "type" {
				fits = ok && string(text[1:len(text)-1]) == kind
			} else {
				*sdp = text
			}
			return ok
		}
		return s.Skip()
	})
	switch {
	case !ok:
		return false
	case !fits:
		return s.Fail(field, "has another type, or none")
	case len(*sdp) < 3 || len(*sdp) > MaxSDP+2:
		return s.Fail(field, "has no sdp, or one above 16,384 bytes")
	}
	return true
}

// check looks at the whole once all members are known.
func (d *requestDecoder) check() bool {
	r := d.r
	switch {
	case r.Kind == 0:
		return d.Fail("action", "is missing")
	case r.Kind == Scrape:
		if r.HasHash {
			r.Hashes = append(r.Hashes, r.InfoHash)
		}
		r.Own = !r.HasHash && !d.all
		r.Offers, r.SDP = r.Offers[:0], nil
		return true
	case !r.HasHash:
		return d.Fail("info_hash", "is missing")
	case !d.peer:
		return d.Fail("peer_id", "is missing")
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
		return d.Fail("to_peer_id", "is missing")
	case !d.offer:
		return d.Fail("offer_id", "is missing")
	}
	return true
}
