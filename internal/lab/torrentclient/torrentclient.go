// Package torrentclient reads what a tracker of WebTorrent says to its clients (spec/webtorrent.md): the client's half of the codec
// internal/wire/webtorrent, for load sessions and tests. Leeway is no such client.
package torrentclient

import (
	"github.com/leeway-video/leeway/internal/wire/jsonscan"
	"github.com/leeway-video/leeway/internal/wire/webtorrent"
)

// Decode reads a tracker's message into r. The error is always a *jsonscan.Problem.
func Decode(b []byte, r *webtorrent.Reply) error {
	*r = webtorrent.Reply{Files: r.Files[:0]}
	d := decoder{Scanner: jsonscan.New(b), r: r}
	if d.Document(d.member) {
		d.check()
	}
	return d.Err()
}

type decoder struct {
	jsonscan.Scanner
	r             *webtorrent.Reply
	action        []byte
	offer, answer webtorrent.SDP
	// There and well-formed.
	hash, peer, named, files, counted bool
}

func (d *decoder) member(name []byte) bool {
	r := d.r
	switch string(name) {
	case "action":
		if d.Peek() != '"' {
			return d.Wrong("action", "is not a string")
		}
		text, ok := d.Text()
		d.action = text
		return ok
	case "info_hash":
		return d.about()
	case "peer_id":
		d.peer = true
		return r.PeerID.Scan(&d.Scanner, "peer_id")
	case "offer_id":
		d.named = true
		return r.OfferID.Scan(&d.Scanner, "offer_id")
	case "offer":
		return d.offer.Scan(&d.Scanner, "offer", "offer")
	case "answer":
		return d.answer.Scan(&d.Scanner, "answer", "answer")
	case "interval":
		return d.figure("interval", &r.Interval)
	case "complete":
		d.counted = true
		return d.figure("complete", &r.Complete)
	case "incomplete":
		return d.figure("incomplete", &r.Incomplete)
	case "failure reason", "warning message":
		if d.Peek() != '"' {
			return d.Wrong("failure reason", "is not a string")
		}
		text, ok := d.Text()
		r.Reason = text
		return ok
	case "files":
		d.files = true
		return d.scraped()
	}
	return d.Skip()
}

// about reads info_hash, which is empty in a failure that is about no swarm.
func (d *decoder) about() bool {
	if d.Peek() != '"' {
		return d.Wrong("info_hash", "is not a string")
	}
	raw, ok := d.Text()
	if !ok || string(raw) == `""` {
		return ok
	}
	d.hash = true
	return d.r.InfoHash.Read(raw[1:len(raw)-1]) || d.Fail("info_hash", "is not 20 code points up to U+00FF")
}

func (d *decoder) figure(field string, v *int) bool {
	if c := d.Peek(); c != '-' && (c < '0' || c > '9') {
		return d.Wrong(field, "is not a number")
	}
	n, ok := d.Number()
	if ok {
		*v = webtorrent.Count(n, 1<<31-1)
	}
	return ok
}

func (d *decoder) scraped() bool {
	r := d.r
	if d.Peek() != '{' {
		return d.Wrong("files", "is not an object")
	}
	return d.Object(func(name []byte) bool {
		var f webtorrent.File
		if !f.InfoHash.Read(name) {
			return d.Fail("files", "has a name that is not 20 code points up to U+00FF")
		}
		if d.Peek() != '{' {
			return d.Wrong("files", "holds something else than objects")
		}
		ok := d.Object(func(name []byte) bool {
			switch string(name) {
			case "complete":
				return d.figure("files.complete", &f.Complete)
			case "incomplete":
				return d.figure("files.incomplete", &f.Incomplete)
			case "downloaded":
				return d.figure("files.downloaded", &f.Downloaded)
			}
			return d.Skip()
		})
		r.Files = append(r.Files, f)
		return ok
	})
}

func (d *decoder) check() bool {
	r := d.r
	action := string(d.action)
	switch {
	case action != `"announce"` && action != `"scrape"`:
		return d.Fail("action", "is neither announce nor scrape")
	case r.Reason != nil:
		r.Kind = webtorrent.Failure
	case action == `"scrape"`:
		r.Kind = webtorrent.Scraped
		return d.files || d.Fail("files", "is missing")
	case !d.hash:
		return d.Fail("info_hash", "is missing")
	case d.offer != nil || d.answer != nil:
		r.Kind, r.SDP = webtorrent.Offered, d.offer
		if d.offer == nil {
			r.Kind, r.SDP = webtorrent.Answered, d.answer
		}
		return d.peer && d.named || d.Fail("", "lacks peer_id or offer_id")
	case !d.counted:
		return d.Fail("", "is of no known kind")
	default:
		r.Kind = webtorrent.Ack
	}
	return true
}
