package loadgen

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"

	"github.com/leeway-video/leeway/internal/lab/torrentclient"
	"github.com/leeway-video/leeway/internal/wire/webtorrent"
)

// description is an SDP of the length that browsers make for one data channel.
var description = webtorrent.SDP(`"v=0\r\no=- 4611731400430051336 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\n` +
	strings.Repeat(`a=candidate:1467250027 1 udp 2122260223 192.0.2.17 46243 typ host generation 0 network-id 1\r\n`, 4) +
	`a=ice-ufrag:dgGR\r\na=ice-pwd:iJq+7LpvTBcCBr1KQmkrzLfh\r\na=setup:actpass\r\na=mid:0\r\na=sctp-port:5000\r\n"`)

// torrentScript announces itself with ready offers, and answers every offer.
type torrentScript struct {
	counts       *counts
	swarm, peer  webtorrent.ID
	offers       int
	reply        webtorrent.Reply
	answer       webtorrent.Request
	answerBuffer []byte

	mu     sync.Mutex
	serial uint64             // guarded by mu: of offers
	ask    webtorrent.Request // guarded by mu
	buffer []byte             // guarded by mu
}

func newTorrentScript(s *session) *torrentScript {
	t := &torrentScript{counts: &s.d.counts, offers: s.d.cfg.Offers}
	copy(t.swarm[:], fmt.Sprintf("swarm %d", s.number%s.d.cfg.Swarms))
	copy(t.peer[:], "-LW0100-")
	binary.BigEndian.PutUint64(t.peer[12:], uint64(s.number))
	return t
}

func (t *torrentScript) greet(say func([]byte)) {
	say(webtorrent.AppendRequest(nil, &webtorrent.Request{
		Kind: webtorrent.Announce, InfoHash: t.swarm, PeerID: t.peer, Event: webtorrent.Started,
	}))
}

func (t *torrentScript) announce(say func([]byte)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &t.ask
	r.Kind, r.InfoHash, r.PeerID, r.Offers = webtorrent.Announce, t.swarm, t.peer, r.Offers[:0]
	for range t.offers {
		t.serial++
		id := t.peer
		binary.BigEndian.PutUint64(id[:], t.serial)
		r.Offers = append(r.Offers, webtorrent.Offer{ID: id, SDP: description})
	}
	t.buffer = webtorrent.AppendRequest(t.buffer[:0], r)
	say(t.buffer)
}

func (t *torrentScript) hear(message []byte, say func([]byte)) (acked bool, err error) {
	r := &t.reply
	if err := torrentclient.Decode(message, r); err != nil {
		return false, fmt.Errorf("the tracker sent %.200q: %w", message, err)
	}
	switch r.Kind {
	case webtorrent.Ack:
		t.counts.acks.Add(1)
		return true, nil
	case webtorrent.Offered:
		t.counts.offered.Add(1)
		t.answer = webtorrent.Request{
			Kind: webtorrent.Answer, InfoHash: r.InfoHash, PeerID: t.peer, To: r.PeerID, OfferID: r.OfferID, SDP: description,
		}
		t.answerBuffer = webtorrent.AppendRequest(t.answerBuffer[:0], &t.answer)
		say(t.answerBuffer)
	case webtorrent.Answered:
		t.counts.answered.Add(1)
	case webtorrent.Failure:
		t.counts.failures.Add(1)
	default:
		t.counts.other.Add(1)
	}
	return false, nil
}
