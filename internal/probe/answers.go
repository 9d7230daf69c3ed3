package probe

import (
	"encoding/json"
	"time"
)

// shortTime is what a message of a test with answers takes at most, by the test's mean rate: an answer waits behind it (spec/probe.md,
// ndt7).
const shortTime = 5 * time.Millisecond

// ask is a client's question, to which the answer has the same number.
type ask struct {
	Ask *uint32 `json:"Ask"`
}

type answer struct {
	Answer uint32 `json:"Answer"`
}

// shortSize is the largest message of a test with answers that has sent so many bytes in a time.
func shortSize(sent int64, elapsed time.Duration) int {
	return int(max(firstMessage, min(largestMessage, float64(sent)*shortTime.Seconds()/max(elapsed, shortTime).Seconds())))
}

// asked takes in a text message that may be a question. There are no more of them than of text messages, so there is room.
func (x *session) asked(text []byte) {
	var a ask
	if x.asks == nil || json.Unmarshal(text, &a) != nil || a.Ask == nil {
		return
	}
	x.asks <- *a.Ask
}

// answerAll answers what was asked, of the goroutine that sends.
func (x *session) answerAll() error {
	for {
		select {
		case n := <-x.asks:
			if err := x.answer(n); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// answer answers one, of the goroutine that sends.
func (x *session) answer(n uint32) error {
	text, err := json.Marshal(answer{n})
	if err != nil {
		return err
	}
	return x.socket.Send(false, text)
}
