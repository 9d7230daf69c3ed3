package wsconn

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
)

// paper is a connection that is only written to.
type paper struct {
	net.Conn
	writes [][]byte
	fails  error
	closed bool
}

func (p *paper) Write(b []byte) (int, error) {
	if p.fails != nil {
		return 0, p.fails
	}
	p.writes = append(p.writes, bytes.Clone(b))
	return len(b), nil
}

func (p *paper) Close() error {
	p.closed = true
	return nil
}

// desk is a writer's owner, which has it write when the test says so.
type desk struct {
	woken int
	ends  []bool
}

func (d *desk) wake()              { d.woken++ }
func (d *desk) written(whole bool) { d.ends = append(d.ends, whole) }

func writes(cfg Config) (*writer, *paper, *desk) {
	cfg.complete()
	p, d := &paper{}, &desk{}
	return &writer{cfg: &cfg, net: p, pulse: &pulse{}, owner: d}, p, d
}

// TestWhatIsQueuedGoesOutInOnePiece: one goroutine is asked to write, and what was queued until it comes is one write.
func TestWhatIsQueuedGoesOutInOnePiece(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p, d := writes(Config{})
		for _, m := range []string{"one", "two", "three"} {
			if err := w.Write([]byte(m)); err != nil {
				t.Fatal(err)
			}
		}
		w.answer([]byte{})
		if d.woken != 1 {
			t.Errorf("woken %d times", d.woken)
		}
		w.write()
		if len(p.writes) != 1 || !bytes.HasSuffix(p.writes[0], []byte{0x80 | websocket.PongMessage, 0}) || !bytes.Contains(p.writes[0], []byte("three")) {
			t.Errorf("written: %q", p.writes)
		}
		w.Close(CloseDone, "over")
		w.Close(ClosePolicy, "too late")
		if err := w.Write([]byte("more")); !errors.Is(err, ErrClosed) || d.woken != 2 {
			t.Errorf("after the close: %v, woken %d times", err, d.woken)
		}
		w.write()
		if last := p.writes[len(p.writes)-1]; len(p.writes) != 2 || !bytes.HasSuffix(last, []byte("over")) || len(d.ends) != 1 || !d.ends[0] {
			t.Errorf("the last words: %q, ends %v", last, d.ends)
		}
		w.stop()
		w.forget()
		<-time.After(time.Hour)
		synctest.Wait()
		if p.closed {
			t.Error("a farewell that was said in time is cut off")
		}
	})
}

// TestAFullQueueEndsTheConnection: within lingerTime, for a write may be stuck.
func TestAFullQueueEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p, _ := writes(Config{WriteQueue: 2, WriteBytes: 100})
		if err := w.Write([]byte(strings.Repeat("x", 500))); err != nil {
			t.Errorf("one message may be larger than the queue: %v", err)
		}
		if err := w.Write([]byte("y")); !errors.Is(err, ErrSlow) || !w.closed.Load() {
			t.Errorf("a message into a full queue: %v", err)
		}
		<-time.After(lingerTime + time.Millisecond)
		synctest.Wait()
		if !p.closed {
			t.Error("not cut off")
		}
	})
}

// TestAWriteThatFailsEndsTheConnection: the owner hears once that the last words were not said.
func TestAWriteThatFailsEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p, d := writes(Config{})
		p.fails = net.ErrClosed
		_ = w.Write([]byte("lost"))
		w.write()
		if !p.closed || !w.closed.Load() || len(d.ends) != 1 || d.ends[0] {
			t.Errorf("gone %v, closed %v, ends %v", p.closed, w.closed.Load(), d.ends)
		}
		w.stop()
		w.forget()
	})
}
