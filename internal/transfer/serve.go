package transfer

import (
	"context"
	"time"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// Work serves what can be served now and returns after how long it is to be called again, at the latest. For owners with
// a loop of their own, instead of Run: they call it after every request, promotion and drain.
func (u *Uploader) Work() time.Duration {
	for {
		up, wait := u.pick()
		if up == nil {
			return wait
		}
		u.step(up)
	}
}

// Run serves until ctx is done.
func (u *Uploader) Run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		up, wait := u.pick()
		if up != nil {
			u.step(up)
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-u.wake:
		case <-timer.C:
		}
	}
}

// pick returns the next link that can be served, or how long nothing can be.
func (u *Uploader) pick() (*Upload, time.Duration) {
	now, wait := u.now(), time.Hour
	u.mu.Lock()
	defer u.mu.Unlock()
	for range u.ring {
		u.next = (u.next + 1) % len(u.ring)
		up := u.ring[u.next]
		if up.blocked || up.active == nil && len(up.lanes[0])+len(up.lanes[1]) == 0 {
			continue
		}
		if d := up.until.Sub(now); d > 0 {
			wait = min(wait, d)
			continue
		}
		if up.active == nil {
			lane := peer.Foreground
			if len(up.lanes[lane]) == 0 {
				lane = peer.Background
			}
			up.sending = up.lanes[lane][0]
			up.lanes[lane] = up.lanes[lane][1:]
			up.data, up.offset, up.stop = nil, 0, false
			id := up.sending.id
			up.active = &id
		}
		return up, 0
	}
	return nil, wait
}

// step sends one message of a link's active request.
func (u *Uploader) step(up *Upload) {
	if up.data == nil && !u.begin(up) {
		return
	}
	u.mu.Lock()
	stop, drains := up.stop || up.closed, up.drains
	u.mu.Unlock()
	if stop {
		u.finish(up)
		return
	}
	end := min(up.offset+up.size, len(up.data))
	b, err := peer.Append(u.buf[:0], peer.Data{
		Request: up.sending.id, Offset: uint16(up.offset),
		SentAt: uint32(u.now().UnixMicro()), Payload: up.data[up.offset:end],
	})
	u.buf = b
	if err != nil { // a piece longer than a piece: not ours to send
		up.reject(peer.RejectOutOfRange, []uint32{up.sending.id})
		u.finish(up)
		return
	}
	if !up.cfg.Link.SendData(b) {
		u.mu.Lock()
		up.blocked = up.drains == drains
		u.mu.Unlock()
		return
	}
	up.cfg.Observer.Sent(end - up.offset)
	if up.offset = end; end == len(up.data) {
		up.cfg.Observer.Served()
		u.finish(up)
	}
}

// begin gets the bytes of the active request and the right to send them.
func (u *Uploader) begin(up *Upload) bool {
	data, refusal := up.cfg.Pieces.Piece(up.sending.segment, up.sending.piece)
	if refusal != Served {
		up.reject(peer.RejectReason(refusal-1), []uint32{up.sending.id})
		u.finish(up)
		return false
	}
	wait, ok := time.Duration(0), true
	if up.cfg.Budget != nil {
		wait, ok = up.cfg.Budget.Take(len(data))
	}
	if ok {
		up.data, up.size = data, peer.CutSize(len(data), up.cfg.Link.MaxMessage())
		return true
	}
	now := u.now()
	if wait == 0 || now.Sub(up.sending.at) > maxQueueAge {
		up.reject(peer.RejectBudget, []uint32{up.sending.id})
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
	up.active, up.data = nil, nil
	u.mu.Unlock()
}
