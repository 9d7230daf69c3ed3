package rtclink

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pion/datachannel"
	"github.com/pion/sctp"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// channels are the planned data channels of a link. They are fixed once every one is there, which is when the link opens; until
// then nothing but their methods looks at them.
type channels struct {
	mu      sync.Mutex
	plan    peer.Plan                  // guarded by mu until agreed, then fixed
	agreed  bool                       // guarded by mu
	control *datachannel.DataChannel   // guarded by mu
	ack     *datachannel.DataChannel   // guarded by mu
	data    []*datachannel.DataChannel // guarded by mu; nil entries are awaited
	strays  int                        // guarded by mu

	unused [peer.MaxDataChannels]*datachannel.DataChannel // guarded by mu: of the offer, beyond the agreed number; nil: not there
}

// propose makes places for a plan.
func (c *channels) propose(plan peer.Plan) {
	c.plan, c.data = plan, make([]*datachannel.DataChannel, plan.Data)
}

// agree takes in what the other side made of the plan, once.
func (c *channels) agree(answer peer.Plan) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer.Data > c.plan.Data {
		return fmt.Errorf("rtclink: accept: answer plans %d data channels, the offer %d", answer.Data, c.plan.Data)
	}
	if c.agreed {
		return errAnswered
	}
	c.agreed, c.plan = true, c.plan.Agree(answer)
	c.data = c.data[:c.plan.Data]
	return nil
}

// dial opens every channel of the plan. In-band (DCEP), never negotiated: pion ignores the reliability settings of
// negotiated channels, and everything would run ordered.
func (c *channels) dial(a *sctp.Association, client bool, log loggers) error {
	labels := []string{peer.ControlLabel, peer.AckLabel}
	for i := range c.plan.Data {
		labels = append(labels, peer.DataLabel+strconv.Itoa(i))
	}
	for i, label := range labels {
		id := uint16(2 * i) // RFC 8832: the DTLS client has the even numbers
		if !client {
			id++
		}
		dc, err := datachannel.Dial(a, id, &datachannel.Config{ChannelType: reliability(label), Label: label, LoggerFactory: log})
		if err != nil {
			return fmt.Errorf("rtclink: channel %s: %w", label, err)
		}
		c.take(dc)
	}
	return nil
}

// reliability of a channel: only control messages are in order.
func reliability(label string) datachannel.ChannelType {
	if label == peer.ControlLabel {
		return datachannel.ChannelTypeReliable
	}
	return datachannel.ChannelTypeReliableUnordered
}

// take puts a channel to its place. If the plan has none for it, strays says how many there have been of those. full says that every
// channel of the plan is there.
func (c *channels) take(dc *datachannel.DataChannel) (strays int, full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slot, known := c.slot(&dc.Config)
	if !known {
		c.strays++
		return c.strays, false
	}
	// From now on Read returns at once when there is nothing: one goroutine reads all channels of a link.
	_ = dc.SetReadDeadline(time.Unix(1, 0))
	*slot = dc
	return 0, c.complete()
}

// slot returns where a channel belongs; known is false for a label outside the plan, a second channel of one label,
// and a reliability other than the plan's. Under mu.
func (c *channels) slot(cfg *datachannel.Config) (slot **datachannel.DataChannel, known bool) {
	if cfg.ChannelType != reliability(cfg.Label) {
		return nil, false
	}
	switch label := cfg.Label; {
	case label == peer.ControlLabel:
		slot = &c.control
	case label == peer.AckLabel:
		slot = &c.ack
	case strings.HasPrefix(label, peer.DataLabel):
		i, err := strconv.Atoi(label[len(peer.DataLabel):])
		if err != nil || i < 0 || i >= peer.MaxDataChannels || label != peer.DataLabel+strconv.Itoa(i) {
			return nil, false
		}
		if slot = &c.unused[i]; i < len(c.data) {
			slot = &c.data[i]
		}
	default:
		return nil, false
	}
	return slot, *slot == nil
}

// complete says whether control, ack and every planned data channel are there. Under mu.
func (c *channels) complete() bool {
	if c.control == nil || c.ack == nil {
		return false
	}
	for _, dc := range c.data {
		if dc == nil {
			return false
		}
	}
	return true
}
