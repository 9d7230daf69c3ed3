package webtorrent

import "strconv"

const digits = "0123456789abcdef"

// appendID writes an ID as the string of a message.
func appendID(b []byte, id *ID) []byte {
	b = append(b, '"')
	for _, c := range id {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		case c < 0x80:
			b = append(b, c)
		default:
			b = append(b, 0xc0|c>>6, 0x80|c&0x3f)
		}
	}
	return append(b, '"')
}

// AppendReply writes a tracker's message. An InfoHash that is zero, in a failure, is left empty.
func AppendReply(b []byte, r *Reply) []byte {
	switch r.Kind {
	case Scraped:
		return appendFiles(b, r.Files)
	case Failure:
		b = append(b, `{"action":"announce","info_hash":`...)
		if r.InfoHash == (ID{}) {
			b = append(b, `""`...)
		} else {
			b = appendID(b, &r.InfoHash)
		}
		if r.Interval == 0 {
			b = append(b, `,"failure reason":`...)
			return append(append(b, r.Reason...), '}')
		}
		// Clients look at nothing else of a message that has a failure reason.
		b = append(append(b, `,"warning message":`...), r.Reason...)
		b = strconv.AppendInt(append(b, `,"interval":`...), int64(r.Interval), 10)
		return append(b, '}')
	}
	b = append(b, `{"action":"announce","info_hash":`...)
	b = appendID(b, &r.InfoHash)
	if r.Kind == Ack {
		b = strconv.AppendInt(append(b, `,"interval":`...), int64(r.Interval), 10)
		b = strconv.AppendInt(append(b, `,"complete":`...), int64(r.Complete), 10)
		b = strconv.AppendInt(append(b, `,"incomplete":`...), int64(r.Incomplete), 10)
		return append(b, '}')
	}
	b = appendID(append(b, `,"peer_id":`...), &r.PeerID)
	b = appendID(append(b, `,"offer_id":`...), &r.OfferID)
	if r.Kind == Offered {
		b = append(b, `,"offer":{"type":"offer","sdp":`...)
	} else {
		b = append(b, `,"answer":{"type":"answer","sdp":`...)
	}
	return append(append(b, r.SDP...), `}}`...)
}

func appendFiles(b []byte, files []File) []byte {
	b = append(b, `{"action":"scrape","files":{`...)
	for i := range files {
		f := &files[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = appendID(b, &f.InfoHash)
		b = strconv.AppendInt(append(b, `:{"complete":`...), int64(f.Complete), 10)
		b = strconv.AppendInt(append(b, `,"incomplete":`...), int64(f.Incomplete), 10)
		b = strconv.AppendInt(append(b, `,"downloaded":`...), int64(f.Downloaded), 10)
		b = append(b, '}')
	}
	return append(b, `}}`...)
}

// AppendRequest writes a client's message. An announce has a numwant of as many as it has offers.
func AppendRequest(b []byte, r *Request) []byte {
	if r.Kind == Scrape {
		return appendScrape(b, r)
	}
	b = appendID(append(b, `{"action":"announce","info_hash":`...), &r.InfoHash)
	b = appendID(append(b, `,"peer_id":`...), &r.PeerID)
	if r.Kind == Answer {
		b = appendID(append(b, `,"to_peer_id":`...), &r.To)
		b = appendID(append(b, `,"offer_id":`...), &r.OfferID)
		b = append(b, `,"answer":{"type":"answer","sdp":`...)
		return append(append(b, r.SDP...), `}}`...)
	}
	if r.Event != Periodic {
		b = append(append(append(b, `,"event":"`...), eventNames[r.Event]...), '"')
	}
	switch {
	case r.Complete:
		b = append(b, `,"left":0`...)
	case r.Partial:
		b = append(b, `,"left":1`...)
	}
	if len(r.Offers) == 0 && !r.Full {
		return append(b, '}')
	}
	b = strconv.AppendInt(append(b, `,"numwant":`...), int64(len(r.Offers)), 10)
	b = append(b, `,"offers":[`...)
	for i := range r.Offers {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendID(append(b, `{"offer_id":`...), &r.Offers[i].ID)
		b = append(append(b, `,"offer":{"type":"offer","sdp":`...), r.Offers[i].SDP...)
		b = append(b, `}}`...)
	}
	return append(b, `]}`...)
}

func appendScrape(b []byte, r *Request) []byte {
	b = append(b, `{"action":"scrape"`...)
	if r.Own {
		return append(b, '}')
	}
	b = append(b, `,"info_hash":[`...)
	for i := range r.Hashes {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendID(b, &r.Hashes[i])
	}
	return append(b, `]}`...)
}
