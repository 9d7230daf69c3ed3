package probe

import (
	"context"
	"time"

	"github.com/leeway-video/leeway/internal/background"
	"github.com/leeway-video/leeway/internal/ledbat"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/quality"
)

// packetBytes is what a packet carries of a load, at the least; each is charged for what is around it, too.
const packetBytes = 1156

// load is one that gives way, of a line.
type load struct {
	quality.Load
	session *lineSession
	ctx     context.Context // ends with the load
	stop    context.CancelFunc

	receiver *background.Receiver // guarded by lineSession.mu: of a load up; nil before its channel is there
	lane     *background.Lane     // guarded by lineSession.mu: of a load down, likewise
}

// paidLink is a line whose messages are paid for before they go out.
type paidLink struct {
	Line
	session *lineSession
}

// SendBackground implements background.Link.
func (p paidLink) SendBackground(message []byte) bool {
	return p.session.paysPackets(len(message), true) && p.Line.SendBackground(message)
}

// SendAck implements background.Link.
func (p paidLink) SendAck(message []byte) {
	if p.session.paysPackets(len(message), true) {
		p.Line.SendAck(message)
	}
}

// endless has always something to send.
type endless struct{ server *Server }

// Waiting implements background.Source.
func (endless) Waiting() bool { return true }

// Next implements background.Source.
func (e endless) Next(n int) (peer.Data, bool) {
	return peer.Data{Payload: e.server.random(0, int64(min(n, peer.PieceSize)))}, true
}

// paysPackets charges a message of channel lane, which may take several packets.
func (x *lineSession) paysPackets(bytes int, down bool) bool {
	return x.pays(bytes+packetCost*((bytes-1)/packetBytes), down)
}

// beginLoad starts a load, or refuses it.
func (x *lineSession) beginLoad(asked quality.Load) {
	x.mu.Lock()
	code, text := x.placeFor(asked.Stream)
	if code == "" && x.load != nil {
		code, text = quality.CodeLimit, "one load a connection"
	}
	if code != "" {
		x.mu.Unlock()
		x.refuse(asked.Stream, code, text)
		return
	}
	l := &load{Load: asked, session: x}
	l.ctx, l.stop = context.WithCancel(context.Background())
	x.streams[asked.Stream], x.load = nil, l
	x.active++
	x.mu.Unlock()
	x.work.Go(l.run)
}

// run lives as long as the load does.
func (l *load) run() {
	x := l.session
	defer func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.left()
	}()
	defer l.stop()
	late := time.NewTimer(quality.IdleTime)
	defer late.Stop()
	select {
	case <-x.line.Lane():
	case <-late.C:
		x.say(quality.Error{Stream: &l.Stream, Code: quality.CodeLimit, Text: "there is no channel lane"})
		return
	case <-l.ctx.Done():
		return
	}
	before, _ := x.line.Marks()
	if l.Direction == quality.Down {
		l.send()
		x.say(quality.Sent{Stream: l.Stream})
	} else {
		l.collect()
	}
	x.say(quality.End{Stream: l.Stream, Marks: x.marksSince(before)})
}

// length is the time that a load has.
func (l *load) length() time.Duration { return time.Duration(l.Time) * time.Microsecond }

// collect acknowledges what comes until the client has sent all, or its time is over.
func (l *load) collect() {
	x := l.session
	receiver := background.NewReceiver(paidLink{x.line, x}, nil, time.Now)
	defer receiver.Close()
	x.mu.Lock()
	l.receiver = receiver
	x.mu.Unlock()
	x.say(quality.Ready{Stream: l.Stream})
	late := time.NewTimer(l.length() + quality.SpareTime)
	defer late.Stop()
	select {
	case <-l.ctx.Done():
	case <-late.C:
	}
}

// send sends as long as the load has time.
func (l *load) send() {
	x := l.session
	sender := background.NewSender(ledbat.Config{Controller: ledbat.HostWithin(quality.LeastTarget, quality.MostTarget)}, time.Now)
	lane := sender.Add(paidLink{x.line, x}, endless{x.server}, 0)
	defer lane.Close()
	x.mu.Lock()
	l.lane = lane
	x.mu.Unlock()
	x.say(quality.Ready{Stream: l.Stream})
	ctx, cancel := context.WithTimeout(l.ctx, l.length())
	defer cancel()
	sender.Run(ctx)
}

// Lane implements LineEvents. What comes after a load's end is dropped.
func (x *lineSession) Lane(b []byte, text bool) {
	if !x.paysPackets(len(b), false) {
		return
	}
	x.mu.Lock()
	var receiver *background.Receiver
	var lane *background.Lane
	if x.load != nil {
		receiver, lane = x.load.receiver, x.load.lane
	}
	x.mu.Unlock()
	ok := false
	switch {
	case text:
	case receiver != nil:
		_, _, err := receiver.Data(b)
		ok = err == nil
	case lane != nil:
		ok = lane.Ack(b)
	}
	if !ok {
		x.finish(endProtocol)
	}
}
