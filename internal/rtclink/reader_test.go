package rtclink

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestTheReaderRests: the goroutine that reads a link ends when nothing has come for lingering, and comes back for the next message.
func TestTheReaderRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{rate: 6.25e6, delay: 5 * time.Millisecond, queue: 256 << 10, dice: rand.New(rand.NewPCG(1, 2))}
		near, far := l.play(t)
		const long = 4 * lingering
		<-time.After(long)
		for i := range 3 {
			if s := far.reader.state.Load(); s != readerIdle {
				t.Errorf("after a silence, %d messages in: state %d", i, s)
			}
			if !near.SendData(make([]byte, 1000)) {
				t.Fatal("no room")
			}
			<-time.After(2 * l.delay)
			synctest.Wait()
			if s, bytes := far.reader.state.Load(), (i+1)*1000; s != readerWaits || far.bytes != bytes {
				t.Errorf("right after message %d: state %d, %d bytes read of %d", i, s, far.bytes, bytes)
			}
			<-time.After(long)
			synctest.Wait()
		}
		near.end()
		far.end()
	})
}
