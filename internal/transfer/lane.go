package transfer

import (
	"errors"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

const (
	// mostReady pieces of a link are in hand for the background lane: the one that is being sent, and the next.
	mostReady = 2
	// mostBlocked is how long foreground that its link does not take holds up the background of all links.
	mostBlocked = time.Second
)

var errAck = errors.New("no ack of the background transport")

// backlog is what a link has waiting for the host's controller. Guarded by Uploader.mu.
type backlog struct {
	link background.Link
	// lane is nil before the first piece: a link that is asked for nothing has no state in the controller.
	lane  *background.Lane
	until time.Time // the budget allows nothing before
	acks  int       // that the other side may send: one a message
	// loading says that the next request waits for its bytes; Upload.Loaded lifts it.
	loading bool
	moved   time.Time // when foreground last went out, or began to wait
}

// Acknowledged says that the other side acks background data: what it asks for in that lane is served from now on, and
// what it asks for in the foreground gives way too, if Paced.
func (up *Upload) Acknowledged(link background.Link) {
	up.u.mu.Lock()
	defer up.u.mu.Unlock()
	if up.u.Background != nil && up.back == nil {
		up.back = &backlog{link: link}
	}
}

// lane is nil as long as nothing went out under the controller. Under mu.
func (up *Upload) lane() *background.Lane {
	if up.back == nil {
		return nil
	}
	return up.back.lane
}

// paced says whether foreground goes out under the controller. Under mu.
func (up *Upload) paced() bool { return up.u.Paced && up.back != nil }

// pressing says until when foreground that goes out under the controller keeps the background back; the zero time if there is
// none. Under mu.
func (up *Upload) pressing() time.Time {
	if !up.paced() || len(up.lanes[peer.Foreground]) == 0 && up.front() == 0 {
		return time.Time{}
	}
	return up.back.moved.Add(mostBlocked)
}

// Ack takes a message of the ack channel. What it says may be wrong, and then changes nothing.
func (up *Upload) Ack(b []byte) error {
	if _, ok := ledbat.ParseAck(b); !ok {
		return errAck
	}
	up.u.mu.Lock()
	lane := up.lane()
	owed := up.back != nil && up.back.acks > 0
	if owed {
		up.back.acks--
	} else {
		up.strays++
	}
	over := up.strays > peer.MaxStrays
	up.u.mu.Unlock()
	switch {
	case over:
		return Overrun(peer.LimitStrays)
	case owed && lane != nil:
		lane.Ack(b)
	}
	return nil
}

// Moved says that the link's packets take another way now.
func (up *Upload) Moved() {
	up.u.mu.Lock()
	lane := up.lane()
	up.u.mu.Unlock()
	if lane != nil {
		lane.Reset()
	}
}

// Promote moves background requests to the foreground, in place: a piece goes on where it was.
func (up *Upload) Promote(m peer.Promote) {
	u, n := up.u, 0
	u.mu.Lock()
	for _, id := range m.IDs {
		if !up.behind(id) {
			continue
		}
		n++
		q, _ := up.take(id)
		q.lane, q.at = peer.Foreground, u.now()
		up.press()
		if up.paced() && q.data != nil {
			up.hold(q)
			up.back.lane.Wake()
		} else {
			up.lanes[peer.Foreground] = append(up.lanes[peer.Foreground], q)
		}
	}
	u.mu.Unlock()
	if n > 0 {
		up.cfg.Observer.Promoted(n)
	}
	u.nudge()
}

// press notes that the link has foreground now. Under mu.
func (up *Upload) press() {
	if up.paced() && up.pressing().IsZero() {
		up.back.moved = up.u.now()
	}
	up.u.busy = true
}

// release lets the background go on when there is no foreground any more. Under mu.
func (u *Uploader) release(busy bool) {
	was := u.busy
	if u.busy = busy; busy || !was {
		return
	}
	for _, up := range u.ring {
		if lane := up.lane(); lane != nil && len(up.ready) > 0 {
			lane.Wake()
		}
	}
}

// tell says to the controller whether what goes out under it is foreground: as long as nothing of the background may go.
func (u *Uploader) tell() {
	if !u.Paced || u.Background == nil {
		return
	}
	u.mu.Lock()
	eager := u.busy || !slices.ContainsFunc(u.ring, func(up *Upload) bool {
		return len(up.lanes[peer.Background]) > 0 || len(up.ready) > 0
	})
	u.mu.Unlock()
	u.Background.Eager(eager)
}

// lacking returns a link that wants a piece in hand, and for which lane, or how long none does. Under mu.
func (u *Uploader) lacking() (*Upload, peer.Lane, time.Duration) {
	wait, now := time.Hour, u.now()
	for _, lane := range []peer.Lane{peer.Foreground, peer.Background} {
		if lane == peer.Background && u.busy {
			break
		}
		for i := range u.ring {
			up := u.ring[(u.next+1+i)%len(u.ring)]
			if up.back == nil || up.back.loading || len(up.lanes[lane]) == 0 || lane == peer.Foreground && (!u.Paced || up.front() >= mostReady) ||
				lane == peer.Background && len(up.ready) >= mostReady {
				continue
			}
			if d := up.back.until.Sub(now); d > 0 {
				wait = min(wait, d)
				continue
			}
			return up, lane, 0
		}
	}
	return nil, 0, wait
}

func (u *Uploader) wanting() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	up, _, _ := u.lacking()
	return up != nil
}

// fetch gets the bytes of one request that goes out under the controller, and the right to send them. It says whether there was
// one to try, and if not, after how long there may be.
func (u *Uploader) fetch() (did bool, wait time.Duration) {
	u.mu.Lock()
	up, lane, wait := u.lacking()
	if up == nil {
		u.mu.Unlock()
		return false, wait
	}
	q := up.lanes[lane][0] // it stays there: it may be canceled or promoted meanwhile
	u.next = (u.next + 1) % len(u.ring)
	u.mu.Unlock()

	data, refusal := up.piece(q, &up.back.loading)
	if refusal == Later {
		return true, 0
	}
	if refusal == Served && len(data) > peer.PieceSize {
		refusal = Refuse(peer.RejectOutOfRange) // not ours to send
	}
	if refusal == Served && up.cfg.Budget != nil {
		if again, ok := up.cfg.Budget.Take(len(data)); !ok {
			now := u.now()
			if again > 0 && (lane == peer.Background || now.Sub(q.at) <= maxQueueAge) {
				u.mu.Lock()
				up.back.until = now.Add(again)
				u.mu.Unlock()
				return true, 0
			}
			refusal = Refuse(peer.RejectBudget)
		}
	}
	if refusal != Served {
		u.mu.Lock()
		_, there := up.take(q.id)
		u.mu.Unlock()
		if there {
			up.refuse(q, refusal.reason())
		}
		return true, 0
	}
	up.keep(q.id, data)
	return true, 0
}

// keep puts a piece in hand with its request, wherever that is now.
func (up *Upload) keep(id uint32, data []byte) {
	u := up.u
	u.mu.Lock()
	lane, back := up.lane(), up.back
	if !up.paced() && !up.behind(id) {
		up.loaded(id, data) // promoted meanwhile
		u.mu.Unlock()
		return
	}
	q, there := up.take(id)
	if there {
		q.data = data
		up.hold(q)
	}
	u.mu.Unlock()
	if lane == nil {
		lane = u.Background.Add(back.link, source{up}, 0) // only here, and one at a time
		u.mu.Lock()
		back.lane = lane
		gone := up.closed
		u.mu.Unlock()
		if gone {
			lane.Close()
		}
	}
	lane.Wake()
}

// source is a backlog as the controller's sender sees it.
type source struct{ up *Upload }

// Waiting implements background.Source.
func (s source) Waiting() bool {
	u := s.up.u
	u.mu.Lock()
	defer u.mu.Unlock()
	return s.up.may()
}

// Midway implements background.Source.
func (s source) Midway() bool {
	s.up.u.mu.Lock()
	defer s.up.u.mu.Unlock()
	ready := s.up.ready
	return len(ready) > 0 && ready[0].lane == peer.Foreground && ready[0].offset > 0
}

// may says whether anything of the link may go out under the controller. Under mu.
func (up *Upload) may() bool {
	ready := up.ready
	return len(ready) > 0 && (ready[0].lane == peer.Foreground || !up.u.busy)
}

// Next implements background.Source.
func (s source) Next(n int) (part peer.Data, ok bool) {
	up := s.up
	u, back := up.u, up.back
	u.mu.Lock()
	if !up.may() {
		u.mu.Unlock()
		return peer.Data{}, false
	}
	q := &up.ready[0]
	if rest := len(q.data) - q.offset; rest > n && rest-n < n/8 {
		// Two halves, and no message for a few bytes.
		if u.Paced { // the uplink of a home: equal ones are the smaller bursts
			n = (rest + 1) / 2
		} else { // of whole packets, since n is of an even number of them: a piece is 15 packets then instead of 16
			n = (n+background.Header)/2 - background.Header
		}
	}
	end := min(q.offset+n, len(q.data))
	part = peer.Data{Request: q.id, Offset: uint16(q.offset), Payload: q.data[q.offset:end]}
	q.offset = end
	back.acks++
	if q.lane == peer.Foreground {
		back.moved = u.now()
	}
	lane, whole, sent := q.lane, end == len(q.data), *q
	if whole {
		up.ready = up.ready[1:]
	}
	u.mu.Unlock()
	up.cfg.Observer.Sent(lane, len(part.Payload))
	if whole {
		up.served(sent)
		u.nudge()
	}
	return part, true
}
