package probe

import (
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/netstat"
)

// Sizes of messages, bytes (spec/probe.md, ndt7).
const (
	firstMessage    = 8 << 10
	largestMessage  = 1 << 20
	smallestMessage = 1 << 10
	scaling         = 16 // a message is at most this part of what was sent when its size doubles
	maxReport       = 64 << 10
	maxReports      = 200 // of a client, in one test
	readSize        = 64 << 10
)

// Time between two measurements of the server.
const (
	meanInterval  = 250 * time.Millisecond
	leastInterval = 25 * time.Millisecond
	mostInterval  = 625 * time.Millisecond
)

// measurement is one of ndt7's messages.
type measurement struct {
	AppInfo        appInfo
	ConnectionInfo connectionInfo
	Origin         string
	Test           string
	TCPInfo        *netstat.TCPInfo `json:",omitempty"`
}

type appInfo struct{ ElapsedTime, NumBytes int64 }

type connectionInfo struct{ Client, Server string }

// interval is the time until the next measurement: exponential, so that what repeats on the line cannot keep step with it.
func interval() time.Duration {
	return max(leastInterval, min(mostInterval, time.Duration(rand.ExpFloat64()*float64(meanInterval))))
}

// nextSize is the size of the next message after sent bytes.
func nextSize(size int, sent int64) int {
	if size < largestMessage && int64(size) <= sent/scaling {
		return 2 * size
	}
	return size
}

// session is a test on a WebSocket.
type session struct {
	*test
	socket Socket
	conn   connectionInfo
	bytes  atomic.Int64
	last   netstat.TCPInfo // of the goroutine that sends
	seen   bool            // last is there
	asks   chan uint32     // of the client, which wait for their answers; nil: it does not ask
}

// ndt7 answers a request for a test on a WebSocket.
func (s *Server) ndt7(kind string, run func(*test, *session) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, err := url.ParseQuery(r.URL.RawQuery)
		switch {
		case !s.cfg.Offers(r):
			s.refuse(w, refusal{refusedProtocol, http.StatusBadRequest, "This address speaks WebSocket with the subprotocol " + Subprotocol + ".", ""})
			return
		case len(r.URL.RawQuery) > maxQuery || err != nil:
			s.refuse(w, refusal{refusedProtocol, http.StatusBadRequest, "The query string is too long or cannot be parsed.", ""})
			return
		}
		dscp, err := markAsked(r)
		if err != nil {
			s.refuse(w, refusal{refusedProtocol, http.StatusBadRequest, err.Error(), ""})
			return
		}
		t, ok := s.open(w, r, kind)
		if !ok {
			return
		}
		socket, err := s.cfg.Upgrade(w, r)
		if err != nil {
			t.end(endProtocol)
			return
		}
		t.start = time.Now()
		conn := socket.Conn()
		if dscp > 0 && s.cfg.Mark != nil {
			if err := s.cfg.Mark(conn, dscp); err != nil {
				s.cfg.Log.Debug("packets of a test are not marked", "error", err)
			}
		}
		x := &session{test: t, socket: socket, conn: connectionInfo{Client: conn.RemoteAddr().String(), Server: conn.LocalAddr().String()}}
		if r.URL.Query().Get("answers") == "1" {
			x.asks = make(chan uint32, maxReports)
		}
		_ = socket.SetDeadline(t.deadline())
		t.onStop(func() { socket.Close(true) })
		outcome := run(t, x)
		x.sum()
		t.end(outcome)
	}
}

// measure sends a measurement.
func (x *session) measure() error {
	m := measurement{AppInfo: appInfo{x.elapsed(), x.bytes.Load()}, ConnectionInfo: x.conn, Origin: "server", Test: "download"}
	if x.kind == ndt7Upload {
		m.Test = "upload"
	}
	if info, ok := x.server.cfg.Look(x.socket.Conn()); ok {
		info.ElapsedTime = x.elapsed()
		x.last, x.seen = info, true
		m.TCPInfo = &info
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return x.socket.Send(false, text)
}

// sum counts what the last measurement said.
func (x *session) sum() {
	if !x.seen {
		return
	}
	if x.kind == ndt7Download {
		x.server.cfg.Metrics.Add(mRetransmitted, float64(x.last.BytesRetrans))
	}
	if x.last.MinRTT > 0 {
		x.server.cfg.Metrics.Observe(mMinRTT, float64(x.last.MinRTT)/1e6, x.kind)
	}
}

// download sends for the time of a test.
func (t *test) download(x *session) string {
	heard := make(chan string, 1)
	go func() { heard <- x.listen(false) }()
	outcome := x.feed(heard)
	return x.part(outcome, heard)
}

// feed sends messages and measurements until the time is over, which is what an empty outcome says.
func (x *session) feed(heard chan string) (outcome string) {
	size, next := firstMessage, x.start.Add(interval())
	for {
		select {
		case outcome := <-heard:
			heard <- outcome
			return outcome
		default:
		}
		now := time.Now()
		if now.Sub(x.start) >= runtime {
			return ""
		}
		if err := x.answerAll(); err != nil {
			return x.broken(err)
		}
		if !now.Before(next) {
			if err := x.measure(); err != nil {
				return x.broken(err)
			}
			next = now.Add(interval())
		}
		if !x.moved(int64(size), true) {
			return endBytes
		}
		if err := x.socket.Send(true, x.server.random(x.bytes.Load(), int64(size))); err != nil {
			return x.broken(err)
		}
		size = nextSize(size, x.bytes.Add(int64(size)))
		if x.asks != nil {
			size = min(size, shortSize(x.bytes.Load(), time.Since(x.start)))
		}
	}
}

// upload measures for the time of a test what comes.
func (t *test) upload(x *session) string {
	heard := make(chan string, 1)
	go func() { heard <- x.listen(true) }()
	return x.part(x.watch(heard), heard)
}

// watch sends measurements until the time is over, which is what an empty outcome says.
func (x *session) watch(heard chan string) (outcome string) {
	for {
		left := runtime - time.Since(x.start)
		if left <= 0 {
			return ""
		}
		timer := time.NewTimer(min(left, interval()))
		select {
		case outcome := <-heard:
			timer.Stop()
			heard <- outcome
			return outcome
		case n := <-x.asks:
			timer.Stop()
			if err := x.answer(n); err != nil {
				return x.broken(err)
			}
			continue
		case <-timer.C:
		}
		if err := x.measure(); err != nil {
			return x.broken(err)
		}
	}
}

// part says goodbye, waits for the client's, and closes.
func (x *session) part(outcome string, heard chan string) string {
	code, reason := closeDone, ""
	switch outcome {
	case "":
		_ = x.measure()
	case endBytes:
		code, reason = closeTryAgain, "this address has used up the bytes that it may have in a day"
	case endProtocol:
		code, reason = closePolicy, "not expected in this test"
	case endDraining, endTimeout:
		x.socket.Close(true)
		<-heard
		return outcome
	}
	said := x.socket.Farewell(code, reason, x.deadline())
	if outcome != "" {
		if x.kind == ndt7Upload && outcome != endClient {
			<-heard
			heard <- outcome
			x.socket.Linger()
		}
		x.socket.Close(said != nil)
		<-heard
		return outcome
	}
	last := <-heard
	x.socket.Close(last != endClient)
	switch last {
	case endProtocol, endBytes, endDraining:
		return last
	}
	return endComplete
}

// listen reads what the client sends until it ends. Binary messages are an upload's.
func (x *session) listen(upload bool) (outcome string) {
	buffer := make([]byte, readSize)
	for reports := 0; ; {
		binary, err := x.socket.Next()
		switch {
		case err != nil:
			return x.failed(err)
		case binary && !upload:
			return endProtocol
		case binary:
			if outcome := x.take(buffer); outcome != "" {
				return outcome
			}
			continue
		}
		if reports++; reports > maxReports {
			return endProtocol
		}
		if outcome := x.report(buffer); outcome != "" {
			return outcome
		}
	}
}

// failed is the outcome of an error of the reader.
func (x *session) failed(err error) string {
	var big interface{ Oversized() bool }
	if errors.As(err, &big) && big.Oversized() {
		return endProtocol
	}
	return x.broken(err)
}

// take reads a binary message.
func (x *session) take(buffer []byte) (outcome string) {
	size := int64(0)
	for {
		n, err := x.socket.Read(buffer)
		if n > 0 && !x.moved(int64(n), false) {
			return endBytes
		}
		size += int64(n)
		x.bytes.Add(int64(n))
		switch {
		case err == io.EOF && size < smallestMessage:
			return endProtocol
		case err == io.EOF:
			return ""
		case err != nil:
			return x.failed(err)
		}
	}
}

// report reads a text message, which must fit into the buffer.
func (x *session) report(buffer []byte) (outcome string) {
	n, err := io.ReadFull(x.socket, buffer[:maxReport])
	switch {
	case err == nil: // there may be more
		return endProtocol
	case err != io.EOF && err != io.ErrUnexpectedEOF:
		return x.failed(err)
	}
	said := "taken"
	if !json.Valid(buffer[:n]) {
		said = "malformed"
	}
	x.server.cfg.Metrics.Add(mReports, 1, said)
	x.asked(buffer[:n])
	return ""
}
