package tracker

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/leeway-video/leeway/internal/wire/bus"
	"github.com/leeway-video/leeway/internal/wire/signal"
	"github.com/leeway-video/leeway/internal/wire/webtorrent"
)

// WebTorrent says who may speak the WebTorrent protocol. It is off unless InfoHashes or Token is set; each that is set has
// to be satisfied.
type WebTorrent struct {
	InfoHashes []webtorrent.ID // that may be announced
	Token      string          // that the address has to carry
	Interval   time.Duration   // between a client's announces; 120 s
	MaxSwarms  int             // peers of one socket; 64
}

// claimAgain is when, in seconds, a peer_id that is another socket's may be claimed again. Mostly that socket is the claimant's own,
// of a page that began anew: clients hold one for a second more when they have sent an answer on it, since an answer gets none.
const claimAgain = 3

// On says whether the protocol is offered.
func (w *WebTorrent) On() bool { return len(w.InfoHashes) > 0 || w.Token != "" }

func (w *WebTorrent) complete() {
	if w.Interval == 0 {
		w.Interval = 2 * time.Minute
	}
	if w.MaxSwarms == 0 {
		w.MaxSwarms = 64
	}
}

// torrentRefusals are the codes of spec/webtorrent.md with the sentence that goes with each.
var torrentRefusals = []struct{ code, sentence string }{
	{"bad-message", ""}, // the problem found
	{"not-allowed", "This tracker does not serve this torrent."},
	{"peer-id-taken", "Another connection speaks for this peer_id."},
	{"not-introduced", "No such offer of that peer was passed on to this one."},
	{"too-many-swarms", "This connection is in as many swarms as one may be."},
	{"swarm-full", "There is no room for another peer."},
	{"rate-limited", "Too many messages."},
	{"gone", ""}, // not told
}

// torrentMessages are the kinds of message that are counted, by webtorrent.Kind.
var torrentMessages = []string{
	webtorrent.Announce: "announce", webtorrent.Answer: "answer", webtorrent.Scrape: "scrape", webtorrent.Ack: "ack",
	webtorrent.Offered: "offered", webtorrent.Answered: "answered", webtorrent.Scraped: "scraped", webtorrent.Failure: "failure",
}

// torrentCounts are what the hot path counts; the ticker hands them to the metrics.
type torrentCounts struct {
	messages [webtorrent.Failure + 1]atomic.Int64
	refused  [8]atomic.Int64 // as torrentRefusals
}

// torrentSession is one socket of the WebTorrent protocol. Receive handles its messages; others write to conn.
type torrentSession struct {
	t       *Tracker
	conn    Conn
	of      *address
	silent  *time.Timer // ends a socket without announce; nil once there was one
	limiter *rate.Limiter
	bad     int      // malformed so far
	over    int      // refused by the limiter so far
	guest   guestKey // of a socket of another tracker, which has no conn here
	number  uint64   // guarded by guests.mu: by which other trackers know the socket; 0: they do not

	mu    sync.Mutex          // after a shard's
	peers []torrentMembership // guarded by mu
	homes map[signal.ID]bool  // guarded by mu: other trackers that know of the socket
	ended bool                // guarded by mu
}

// torrentMembership is a peer of this socket, which may have left.
type torrentMembership struct {
	hash webtorrent.ID
	peer *torrentPeer // nil where away is set
	away *away
}

// work is what one message needs.
type torrentWork struct {
	request    webtorrent.Request
	deliveries []torrentDelivery
	files      []webtorrent.File
}

var (
	torrentPool = sync.Pool{New: func() any { return &torrentWork{} }}
	replyPool   = sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}
)

// WebTorrent says whether the protocol is offered.
func (t *Tracker) WebTorrent() bool { return t.cfg.WebTorrent.On() }

// AllowsToken says whether a handshake of the WebTorrent protocol carries what it needs.
func (t *Tracker) AllowsToken(token string) bool {
	if !t.WebTorrent() {
		return false
	}
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(t.cfg.WebTorrent.Token))
	return t.cfg.WebTorrent.Token == "" || subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// AcceptWebTorrent takes a socket of the WebTorrent protocol in.
func (t *Tracker) AcceptWebTorrent(c Conn, v Visitor) Receiver {
	of, reason := t.admit(v.Address)
	if of == nil {
		t.cfg.Metrics.Add(defRejected, 1, reason)
		return t.turnAway(c, false)
	}
	s := &torrentSession{
		t: t, conn: c, of: of, limiter: rate.NewLimiter(rate.Limit(t.cfg.MessagesPerSecond), 2*t.cfg.MessagesPerSecond),
	}
	if !t.enlist(s) {
		t.leave(of)
		return t.turnAway(c, false)
	}
	// Its offers hold all candidates, which takes a client a while to find.
	s.silent = t.silent(c, 6*t.cfg.HelloTimeout, "no announce")
	return s
}

// Receive implements Receiver.
func (s *torrentSession) Receive(raw []byte) bool {
	if !s.handle(raw) {
		return false
	}
	if s.silent != nil && s.bad+s.over == 0 {
		s.silent.Stop()
		s.silent = nil
	}
	return true
}

// End implements Receiver.
func (s *torrentSession) End(err error) {
	s.t.endedWith(err, s.of)
	if s.silent != nil {
		s.silent.Stop()
	}
	s.end()
	s.t.leave(s.of)
}

// enlist notes the socket, so that a drain finds it.
func (t *Tracker) enlist(s *torrentSession) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.draining.Load() {
		return false
	}
	t.torrentSockets[s] = struct{}{}
	return true
}

func (s *torrentSession) end() {
	s.t.mu.Lock()
	delete(s.t.torrentSockets, s)
	s.t.mu.Unlock()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.leaveHomes()
	s.leaveSwarms()
	s.conn.Close(closeDone, "")
}

// leaveSwarms takes the peers of the socket out of the swarms of this tracker.
func (s *torrentSession) leaveSwarms() {
	for _, m := range s.here() {
		s.t.torrents.leave(m)
	}
}

// here lists the peers of the socket that are in swarms of this tracker.
func (s *torrentSession) here() (all []torrentMembership) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.peers {
		if m.peer != nil {
			all = append(all, m)
		}
	}
	return all
}

func (s *torrentSession) add(m torrentMembership) {
	s.mu.Lock()
	s.peers = append(s.peers, m)
	s.mu.Unlock()
}

// room says whether the socket may carry another peer.
func (s *torrentSession) room() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.peers) < s.t.cfg.WebTorrent.MaxSwarms
}

// forget drops the peers that have left from the list.
func (s *torrentSession) forget() {
	left := map[*torrentPeer]bool{}
	for _, m := range s.here() {
		left[m.peer] = s.t.torrents.left(m)
	}
	s.mu.Lock()
	s.peers = slices.DeleteFunc(s.peers, func(m torrentMembership) bool { return m.peer != nil && left[m.peer] })
	s.mu.Unlock()
}

// handle acts on one message and says whether the session goes on.
func (s *torrentSession) handle(raw []byte) bool {
	now := s.t.cfg.Now()
	if !s.limiter.AllowN(now, 1) {
		s.over++
		s.refuse(&webtorrent.Request{}, "rate-limited", "")
		return s.over <= maxRateOver || s.violates("rate-limited")
	}
	w := torrentPool.Get().(*torrentWork)
	defer torrentPool.Put(w)
	r := &w.request
	if err := webtorrent.Decode(raw, r); err != nil {
		s.bad++
		var malformed *webtorrent.MalformedError
		if errors.As(err, &malformed) {
			s.refuse(r, "bad-message", "The "+malformed.Error()+".")
		}
		return s.bad < maxBad || s.violates("bad-message")
	}
	s.t.torrentCounts.messages[r.Kind].Add(1)
	switch r.Kind {
	case webtorrent.Scrape:
		s.scrape(w)
	case webtorrent.Answer:
		s.answer(r)
	default:
		s.announce(w, now)
	}
	return true
}

func (s *torrentSession) violates(reason string) bool {
	s.t.offended(s.of)
	s.conn.Close(closePolicy, reason)
	return false
}

func (s *torrentSession) announce(w *torrentWork, now time.Time) {
	r := &w.request
	if !s.t.allowed(&r.InfoHash) {
		s.refuse(r, "not-allowed", "")
		return
	}
	if !s.room() {
		s.forget()
	}
	if home := s.t.torrentHome(&r.InfoHash); home != s.t.id {
		if code := s.forward(r, home); code != "" {
			s.refuse(r, code, "")
		}
		return
	}
	s.announceHere(w, now)
}

// announceHere is an announce in a swarm that is at home here.
func (s *torrentSession) announceHere(w *torrentWork, now time.Time) {
	r := &w.request
	ack, deliveries, code := s.t.torrents.announce(s, r, now, w.deliveries[:0])
	w.deliveries = deliveries
	if code != "" {
		s.refuse(r, code, "")
		return
	}
	ack.Interval = int(s.t.cfg.WebTorrent.Interval.Seconds())
	s.write(&ack)
	for i, d := range deliveries {
		o := &r.Offers[d.offer]
		d.to.write(&webtorrent.Reply{Kind: webtorrent.Offered, InfoHash: r.InfoHash, PeerID: r.PeerID, OfferID: o.ID, SDP: o.SDP})
		deliveries[i].to = nil // the pool holds no socket
	}
}

func (s *torrentSession) answer(r *webtorrent.Request) {
	if home := s.t.torrentHome(&r.InfoHash); home != s.t.id {
		s.tell(home, r, false)
		return
	}
	s.answerHere(r)
}

// answerHere is an answer in a swarm that is at home here.
func (s *torrentSession) answerHere(r *webtorrent.Request) {
	to, code := s.t.torrents.answered(s, r)
	if code != "" {
		s.refuse(r, code, "")
		return
	}
	to.write(&webtorrent.Reply{Kind: webtorrent.Answered, InfoHash: r.InfoHash, PeerID: r.PeerID, OfferID: r.OfferID, SDP: r.SDP})
}

// refuse counts a message that is not acted on, and says so: an answer to nobody is not worth words.
func (s *torrentSession) refuse(r *webtorrent.Request, code, sentence string) {
	for i, known := range torrentRefusals {
		if known.code != code {
			continue
		}
		s.t.torrentCounts.refused[i].Add(1)
		if sentence == "" {
			sentence = known.sentence
		}
	}
	if sentence == "" {
		return
	}
	failure := webtorrent.Reply{Kind: webtorrent.Failure, Reason: strconv.AppendQuote(nil, code+": "+sentence)}
	if r.HasHash {
		failure.InfoHash = r.InfoHash
	}
	if code == "peer-id-taken" && r.Kind == webtorrent.Announce && r.Event != webtorrent.Stopped {
		failure.Interval = claimAgain
	}
	s.write(&failure)
}

// write queues a message; any goroutine may. A reader that is too slow loses its socket.
func (s *torrentSession) write(r *webtorrent.Reply) {
	s.t.torrentCounts.messages[r.Kind].Add(1)
	if s.guest.socket != 0 {
		s.t.send(s.guest.tracker, &bus.Delivery{Kind: bus.KindTorrent, Torrent: &bus.Torrent{
			Op: bus.TorrentHear, Tracker: s.t.id, Socket: s.guest.socket, Message: webtorrent.AppendReply(nil, r),
		}})
		return
	}
	b := replyPool.Get().(*[]byte)
	*b = webtorrent.AppendReply((*b)[:0], r)
	if err := s.conn.Write(*b); err != nil && isSlow(err) {
		s.t.cfg.Metrics.Add(defRejected, 1, "slow")
	}
	replyPool.Put(b)
}

// maintainTorrents drops peers that are silent and hands over what was counted, once a beat.
func (t *Tracker) maintainTorrents(now time.Time) {
	if !t.WebTorrent() {
		return
	}
	if every := t.cfg.WebTorrent.Interval; now.Sub(t.torrentsExpired) >= every/4 {
		t.torrentsExpired = now
		t.torrents.expire(now.Add(-3 * every))
	}
	t.maintainGuests(now)
	t.mu.Lock()
	sockets := len(t.torrentSockets)
	t.mu.Unlock()
	t.cfg.Metrics.Set(defTorrentSockets, float64(sockets))
	t.cfg.Metrics.Set(defTorrentSwarms, float64(t.torrents.swarms.Load()))
	t.cfg.Metrics.Set(defTorrentPeers, float64(t.torrents.peers.Load()))
	for kind, name := range torrentMessages {
		if n := t.torrentCounts.messages[kind].Swap(0); n > 0 {
			t.cfg.Metrics.Add(defTorrentMessages, float64(n), name)
		}
	}
	for i, r := range torrentRefusals {
		if n := t.torrentCounts.refused[i].Swap(0); n > 0 {
			t.cfg.Metrics.Add(defTorrentRefused, float64(n), r.code)
		}
	}
}
