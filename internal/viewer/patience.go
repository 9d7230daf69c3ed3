package viewer

import (
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/transfer"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

const (
	stallPause   = 2 * time.Second
	mostStalls   = 3 // in a row, without as many bytes as a piece has, that end a link
	rejectPause  = 200 * time.Millisecond
	longestPause = 30 * time.Second
	// muteTime is how long a peer that has stalled and answers a ping may go on without data.
	muteTime = 3 * time.Second
	// latePong is how long a pong may take that says something about data: after an outage requests, and what took them back,
	// arrive together.
	latePong = 2 * time.Second
	// lateShare of the segment's own rate is what a peer has to bring if it is to be asked again at once.
	lateShare = 10
	// promptPieces without lateness are as many as a new peer is asked for: the next pause is the shortest again.
	promptPieces = 4
)

// waits is how long a peer is left alone that has what it rejected.
var waits = map[peer.RejectReason]time.Duration{
	peer.RejectBusy: rejectPause, peer.RejectBudget: 5 * time.Second, peer.RejectLaneOff: 30 * time.Second,
}

// patience is how long this side of a link puts up with the other: the rules of spec/peer-protocol.md on rejects, stalls,
// lateness and silence.
type patience struct {
	patienceHost
	stalledUs  int64 // until then the peer is left alone
	behindUs   int64 // likewise, in the background
	stalls     int   // in a row without as many bytes as a piece has
	rejects    int   // likewise
	stallCame  int64 // bytes that had come by the last of them
	stallHeard int64 // messages that had come by the first stall in a row
	lateness   lateness
	mute       mute
}

// patienceHost is what patience needs to know, and what it does.
type patienceHost struct {
	loop    Loop
	nowUs   func() int64
	lenient bool // with a seed, which may be short of budget and is its operator's business
	data    func() (bytes int64, last time.Time)
	came    func() int64 // messages of any kind
	drifted func() bool  // this side was adrift of late
	ping    func() uint32
	drop    func(peer.CloseReason)
}

// lateness is how a peer keeps up with what it is asked for.
type lateness struct {
	times   int // in a row
	judged  time.Time
	brought int // pieces since then
}

// mute is the suspicion that a peer does not want to send.
type mute struct {
	pings int    // and one more, sent since the last stall without data since
	came  int64  // bytes that had come by then
	nonce uint32 // of the latest of them
	timer func()
}

// stalled notes that requests to the peer ran out of time: a pause, and a ping whose answer shows that it could have sent.
func (p *patience) stalled() {
	p.count()
	p.leaveAlone(stallPause, p.stalls-1)
	if p.lenient || p.stalls >= mostStalls {
		return
	}
	if p.heard(); p.mute.pings == 0 {
		p.mute.pings, p.mute.came = 1, p.bytes()
		p.stopMute()
		p.probe()
	}
}

func (p *patience) bytes() int64 { n, _ := p.data(); return n }

// count counts a stall.
func (p *patience) count() {
	if p.forgive(); p.stalls == 0 {
		p.stallHeard = p.came()
	}
	p.stallCame = p.bytes()
	if p.stalls++; p.stalls >= mostStalls && !p.lenient {
		p.loop.Post(func() { p.drop(p.reason()) }) // not amid what the schedule has decided
	}
}

// reason is what a link ends with on which three requests in a row have stalled. A peer that shows that it is there is to
// blame. One from which nothing comes any more is in another network, or asleep; or this side is.
func (p *patience) reason() peer.CloseReason {
	if p.drifted() || p.came() == p.stallHeard && p.bytes() >= peer.PieceSize {
		return peer.CloseTimeout
	}
	return peer.CloseStalled
}

// forgive forgets stalls and rejects once as much came as a piece has.
func (p *patience) forgive() {
	if n := p.bytes(); n >= p.stallCame+peer.PieceSize {
		p.stalls, p.rejects = 0, 0
		p.stallCame = n
	}
}

// leaveAlone asks nothing of the peer for a while, longer each time.
func (p *patience) leaveAlone(d time.Duration, times int) {
	p.stalledUs = max(p.stalledUs, p.nowUs()+min(longestPause, d<<min(times, 16)).Microseconds())
}

// rejected takes a reject of requests. It says whether it says that there are no such pieces, not that they do not suit now.
func (p *patience) rejected(reason peer.RejectReason, gone []transfer.Order) (denies bool) {
	wait, has := waits[reason]
	if !has {
		wait = rejectPause
	}
	p.mute.pings = 0 // that is an answer, if a late one
	urgent := len(gone) == 0
	for _, o := range gone {
		urgent = urgent || o.Lane == peer.Foreground
		if o.Lane == peer.Background {
			if p.behindUs = p.nowUs() + wait.Microseconds(); reason == peer.RejectLaneOff {
				p.behindUs = never
			}
		}
	}
	if p.forgive(); urgent {
		p.leaveAlone(wait, p.rejects)
		p.rejects++
	}
	return !has
}

// late judges a viewer whose requests for a segment were taken back since another source is quicker, once for what was asked before.
// One that brings next to nothing is left alone, longer each time. One of which not a byte came has stalled; but no ping tells
// whether it could have sent: others may have asked it before, and what was taken back does not come any more.
func (p *patience) late(play time.Duration, gone []transfer.Order) {
	l := &p.lateness
	first := slices.IndexFunc(gone, func(o transfer.Order) bool {
		return o.Lane == peer.Foreground && o.Why == schedule.WhyNear && o.Sent.After(l.judged)
	})
	if p.lenient || first < 0 {
		return
	}
	o, now, brought := gone[first], p.loop.Now(), int64(l.brought)*segment.PieceSize
	l.judged, l.brought = now, 0
	if brought > 0 && brought*lateShare*play.Milliseconds() >= o.Target.Certificate.Length*now.Sub(o.Sent).Milliseconds() {
		return
	}
	p.leaveAlone(stallPause, l.times)
	l.times++
	if _, last := p.data(); last.Before(o.Sent) {
		p.count()
	}
}

// brought counts a piece that came whole.
func (p *patience) brought() {
	if p.lateness.brought++; p.lateness.brought >= promptPieces {
		p.lateness.times = 0
	}
}

// probe sends a ping that no other pong answers.
func (p *patience) probe() {
	p.mute.timer = nil
	p.mute.nonce = p.ping()
}

// heard ends the suspicion of a peer that sent something since.
func (p *patience) heard() {
	if p.bytes() > p.mute.came {
		p.mute.pings = 0
	}
}

// pong hears the answer to a ping.
func (p *patience) pong(nonce uint32, took time.Duration) {
	if p.heard(); p.mute.pings == 0 || nonce != p.mute.nonce {
		return
	}
	if took > latePong {
		p.mute.pings = 0
		return
	}
	if p.mute.pings > 1 { // it runs, has had the requests since before the first ping, and time: it does not want to
		p.drop(peer.CloseStalled)
		return
	}
	p.mute.pings = 2
	p.mute.timer = p.loop.After(muteTime, p.probe)
}

func (p *patience) stopMute() {
	if p.mute.timer != nil {
		p.mute.timer()
		p.mute.timer = nil
	}
}
