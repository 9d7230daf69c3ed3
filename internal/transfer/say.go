package transfer

import (
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// MostShown is how long a certificate may be that goes with an answer, bytes: a message has its type and a segment beside it.
const MostShown = signal.MaxSaidBytes - 1 - len(segment.ID{})

// Say writes the first control messages of a link as its answer carries them (spec/peer-protocol.md, order of events).
// A message out of limits is a fault of the caller and is left out with what follows it.
func Say(messages ...peer.Message) []signal.Bytes {
	var said []signal.Bytes
	for _, m := range messages {
		b, err := peer.Append(nil, m)
		if err != nil {
			break
		}
		said = append(said, b)
	}
	return said
}
