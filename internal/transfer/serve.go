package transfer

import (
	"context"
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Work serves what can be served now and returns after how long it is to be called again, at the latest. For owners with
// a loop of their own, instead of Run: they call it whenever Wake says so.
func (u *Uploader) Work() time.Duration {
	for {
		wait := u.work()
		if u.Background == nil {
			return wait
		}
		again := u.Background.Work()
		if u.wanting() {
			continue
		}
		if look, shed := u.shed(); !shed {
			return min(wait, again, look)
		}
	}
}

// work serves the foreground and fetches what the background needs, and says after how long there may be more.
func (u *Uploader) work() time.Duration {
	for {
		up, wait := u.pick()
		if up != nil {
			u.step(up)
			continue
		}
		did, again := u.fetch()
		if !did {
			u.tell()
			return min(wait, again)
		}
	}
}

// Run serves until ctx is done. One loop has both lanes: of two, each would wake the other for every piece.
func (u *Uploader) Run(ctx context.Context) {
	var behind <-chan struct{}
	if u.Background != nil {
		behind = u.Background.Woken()
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		timer.Reset(u.Work())
		select {
		case <-ctx.Done():
		case <-u.wake:
		case <-behind:
		case <-timer.C:
		}
	}
}

// pick returns the next link that has foreground to send, or how long nothing can be. Once there is none at all, the
// background may go on.
func (u *Uploader) pick() (*Upload, time.Duration) {
	now, wait := u.now(), time.Hour
	u.mu.Lock()
	defer u.mu.Unlock()
	busy := false
	for range u.ring {
		u.next = (u.next + 1) % len(u.ring)
		up := u.ring[u.next]
		if until := up.pressing(); until.After(now) {
			busy, wait = true, min(wait, until.Sub(now))
		}
		if up.paced() || up.active == nil && len(up.lanes[peer.Foreground]) == 0 {
			continue
		}
		if up.loading {
			continue // and does not delay the others, the background neither
		}
		if up.blocked {
			// Not forever: a peer that reads nothing must not delay what others wait for.
			left := up.blockedAt.Add(mostBlocked).Sub(now)
			if busy = busy || left > 0; left > 0 {
				wait = min(wait, left)
			}
			continue
		}
		busy = true
		if d := up.until.Sub(now); d > 0 {
			wait = min(wait, d)
			continue
		}
		if up.active == nil {
			up.sending = up.begin()
			if up.sending.data != nil { // promoted: it is paid for, and a part of it is there
				up.size = peer.CutSize(len(up.sending.data)-up.sending.offset, up.message())
			}
		}
		u.busy = true
		return up, 0
	}
	u.release(busy)
	return nil, wait
}

// step sends one message of a link's active request.
func (u *Uploader) step(up *Upload) {
	u.mu.Lock()
	stop, drains := up.stop || up.closed, up.drains
	u.mu.Unlock()
	if stop { // before it takes of the budget
		u.finish(up)
		return
	}
	if up.sending.data == nil && !u.load(up) {
		return
	}
	q := &up.sending
	end := min(q.offset+up.size, len(q.data))
	b, err := peer.Append(u.buf[:0], peer.Data{
		Request: q.id, Offset: uint16(q.offset), SentAt: uint32(u.now().UnixMicro()), Payload: q.data[q.offset:end],
	})
	u.buf = b
	if err != nil { // a piece longer than a piece: not ours to send
		up.refuse(*q, peer.RejectOutOfRange)
		u.finish(up)
		return
	}
	if !up.cfg.Link.SendData(b) {
		u.mu.Lock()
		if up.drains == drains {
			up.blocked, up.blockedAt = true, u.now()
		}
		u.mu.Unlock()
		return
	}
	up.cfg.Observer.Sent(q.lane, end-q.offset)
	if q.offset = end; end == len(q.data) {
		sent := *q
		u.finish(up)
		up.served(sent)
	}
}

// message is the length of the messages that pieces are cut into for the link.
func (up *Upload) message() int {
	if c, ok := up.cfg.Link.(Cutter); ok {
		return c.Message()
	}
	return up.cfg.Link.MaxMessage()
}

// load gets the bytes of the active request and the right to send them.
func (u *Uploader) load(up *Upload) bool {
	data, refusal := up.piece(up.sending, &up.loading)
	if refusal == Later {
		return false
	}
	if refusal != Served {
		up.refuse(up.sending, refusal.reason())
		u.finish(up)
		return false
	}
	wait, ok := time.Duration(0), true
	if up.cfg.Budget != nil {
		wait, ok = up.cfg.Budget.Take(len(data))
	}
	if ok {
		up.sending.data, up.size = data, peer.CutSize(len(data), up.message())
		return true
	}
	now := u.now()
	if wait == 0 || now.Sub(up.sending.at) > maxQueueAge {
		up.refuse(up.sending, peer.RejectBudget)
		u.finish(up)
		return false
	}
	u.mu.Lock()
	up.until = now.Add(wait)
	stop := up.stop || up.closed
	u.mu.Unlock()
	if stop {
		u.finish(up)
	}
	return false
}

func (u *Uploader) finish(up *Upload) {
	u.mu.Lock()
	up.active, up.sending.data = nil, nil
	u.mu.Unlock()
}
