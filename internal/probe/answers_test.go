package probe

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"
)

// TestAnswers: the server answers each question once, on its turn; a message before it is short. A client that has not asked for
// answers has none.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		path  string
		wants int
	}{
		{"/ndt/v7/download?answers=1", 5}, {"/ndt/v7/upload?answers=1", 5}, {"/ndt/v7/download", 0}, {"/ndt/v7/upload?answers=2", 0},
	} {
		t.Run(c.path, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, w *world) {
				b := w.must(c.path)
				go func() {
					for i := range 5 {
						<-time.After(time.Second)
						if b.Send(false, fmt.Appendf(nil, `{"Ask": %d}`, i)) != nil {
							return
						}
					}
					_ = b.Send(false, []byte(`{"Ask": -1}`)) // none of these is one
					_ = b.Send(false, []byte(`{"Answer": 7}`))
				}()
				answers, largest := 0, 0
				for {
					binary, err := b.Next()
					if err != nil {
						break
					}
					p, err := io.ReadAll(b)
					if err != nil {
						break
					}
					switch {
					case binary:
						largest = max(largest, len(p))
					case bytes.HasPrefix(p, []byte(`{"Answer"`)):
						if want := fmt.Sprintf(`{"Answer":%d}`, answers); string(p) != want {
							t.Errorf("%s and not %s", p, want)
						}
						answers++
					}
				}
				_ = b.Farewell(closeDone, "", time.Now().Add(time.Second))
				b.Close(false)
				if answers != c.wants {
					t.Errorf("%d answers and not %d", answers, c.wants)
				}
				if short := int(w.rate) / 200; c.path == "/ndt/v7/download?answers=1" && (largest < firstMessage || largest > 2*short) {
					t.Errorf("a message has %d bytes, where %d take 5 ms", largest, short)
				}
			})
		})
	}
}

func TestShortMessages(t *testing.T) {
	for _, c := range []struct {
		sent    int64
		elapsed time.Duration
		want    int
	}{
		{0, 0, firstMessage}, {1 << 20, 10 * time.Second, firstMessage}, {125 << 20, time.Second, 655_360}, {1 << 40, time.Second, largestMessage},
	} {
		if got := shortSize(c.sent, c.elapsed); got != c.want {
			t.Errorf("%d bytes in %v: %d and not %d", c.sent, c.elapsed, got, c.want)
		}
	}
}
