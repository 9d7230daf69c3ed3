package rtclink

import (
	"errors"
	"testing"

	"github.com/pion/datachannel"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

func TestOrderedDataChannelIsAStray(t *testing.T) {
	c := &channels{plan: peer.DefaultPlan, data: make([]*datachannel.DataChannel, 2)}
	const (
		ordered   = datachannel.ChannelTypeReliable
		unordered = datachannel.ChannelTypeReliableUnordered
	)
	for _, try := range []struct {
		label string
		kind  datachannel.ChannelType
		known bool
	}{
		{"lw.control", ordered, true}, {"lw.control", unordered, false}, {"lw.ack", unordered, true}, {"lw.data.0", unordered, true},
		{"lw.data.7", unordered, true}, // beyond the plan: unused
		{"lw.data.8", unordered, false}, {"lw.data.01", unordered, false}, {"lw.data.1", ordered, false}, {"lw.data.", unordered, false},
		{"lw.data.+1", unordered, false}, {"lw.data.0x0", unordered, false}, {"lw.data.0", datachannel.ChannelTypePartialReliableRexmitUnordered, false},
	} {
		if _, known := c.slot(&datachannel.Config{Label: try.label, ChannelType: try.kind}); known != try.known {
			t.Errorf("%s, type %v: known %v", try.label, try.kind, known)
		}
	}
}

// TestChannelsAgreeOnce: the answer may plan less than the offer, and it is taken in once.
func TestChannelsAgreeOnce(t *testing.T) {
	var c channels
	c.propose(peer.Plan{Data: 2, Message: 16384})
	if err := c.agree(peer.Plan{Data: 3, Message: 16384}); err == nil || errors.Is(err, errAnswered) || c.plan.Data != 2 {
		t.Errorf("an answer with more channels than were offered: %v, plan %v", err, c.plan)
	}
	if err := c.agree(peer.Plan{Data: 1, Message: 4096}); err != nil || len(c.data) != 1 || c.plan.Message != 4096 {
		t.Errorf("an answer with less: %v, %d places, plan %v", err, len(c.data), c.plan)
	}
	if err := c.agree(peer.Plan{Data: 1, Message: 2048}); !errors.Is(err, errAnswered) || c.plan.Message != 4096 {
		t.Errorf("a second answer: %v, plan %v", err, c.plan)
	}
	slot, known := c.slot(&datachannel.Config{Label: "lw.data.1", ChannelType: datachannel.ChannelTypeReliableUnordered})
	if slot != &c.unused[1] || !known {
		t.Error("a channel of the offer that the answer does not plan is not unused")
	}
}
