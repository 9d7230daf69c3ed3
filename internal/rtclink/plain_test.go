package rtclink

import (
	"bytes"
	"testing"
)

// TestLinksWithPionsRecords: links whose records pion writes link with each other and with those of ours, carry messages both ways,
// and end without a trace.
func TestLinksWithPionsRecords(t *testing.T) {
	for _, c := range []struct {
		name              string
		offerer, answerer bool
	}{{"both", true, true}, {"the side that offers", true, false}, {"the side that answers", false, true}} {
		t.Run(c.name, func(t *testing.T) {
			leakCheck(t)
			a := listen(t, func(cfg *Config) { cfg.SocketPerLink, cfg.PionRecords = true, c.offerer })
			b := listen(t, func(cfg *Config) { cfg.PionRecords = c.answerer })
			offering, answering := newEnd(), newEnd()
			type counted struct{ bytes, want int }
			done := make(chan counted, 2)
			const messages = 400
			for _, e := range []*end{offering, answering} {
				got := 0
				e.data = func(m []byte) {
					if len(bytes.Trim(m, "\x5a")) > 0 {
						t.Errorf("%d bytes are not what was sent", len(m))
					}
					if got += len(m); got == messages*1000 {
						done <- counted{got, messages * 1000}
					}
				}
			}
			connect(t, a, b, offering, answering)
			for _, e := range []*end{offering, answering} {
				e.link.SendControl([]byte{1, 2, 3})
				go flood(e, messages)
			}
			for _, e := range []*end{offering, answering} {
				if m := wait(t, e.control, "a control message"); !bytes.Equal(m, []byte{1, 2, 3}) {
					t.Errorf("%x", m)
				}
				wait(t, done, "the data")
			}
			offering.link.Close("idle", []byte{9})
			if m := wait(t, answering.control, "the farewell"); !bytes.Equal(m, []byte{9}) {
				t.Errorf("%x", m)
			}
			wait(t, offering.closed, "this side's end")
			wait(t, answering.closed, "the other side's end")
		})
	}
}

// flood sends messages of 1,000 bytes as fast as the link takes them.
func flood(e *end, messages int) {
	m := bytes.Repeat([]byte{0x5a}, 1000)
	for range messages {
		for !e.link.SendData(m) {
			select {
			case <-e.drained:
			case <-e.link.Done():
				return
			}
		}
	}
}
