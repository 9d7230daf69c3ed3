package qualitylink

import (
	"github.com/pion/datachannel"
	"github.com/pion/sctp"

	"github.com/leeway-video/leeway/internal/webrtcend"
)

// largestLane is the largest message of channel lane, bytes (spec/probe.md, Load that gives way).
const largestLane = 16 << 10

// lane is the channel of loads that give way. A Line is a background.Link by it, once Lane is closed.
type lane struct {
	over    *sctp.Association        // set before Open
	channel *datachannel.DataChannel // set before ready
	ready   chan struct{}            // closed when the channel is read
}

func newLane() lane { return lane{ready: make(chan struct{})} }

// OpenLane opens channel lane, from the offering side, once, when the line is open.
func (l *Line) OpenLane() (err error) {
	l.channel, err = datachannel.Dial(l.association, l.control.StreamIdentifier()+2, &datachannel.Config{
		ChannelType: datachannel.ChannelTypeReliableUnordered, Label: labelLane, LoggerFactory: silent,
	})
	if err == nil {
		l.serveLane()
	}
	return err
}

// acceptLane takes the offering side's channel lane; any other one ends the line.
func (l *Line) acceptLane() {
	if l.channel != nil { // it came before the other channels
		l.serveLane()
	}
	for {
		dc, err := datachannel.Accept(l.association, &datachannel.Config{LoggerFactory: silent})
		if err == nil && !l.take(dc) {
			err = ErrChannels
		}
		if err != nil {
			l.cancel(err)
			return
		}
		l.serveLane()
	}
}

// serveLane reads the channel until the line ends.
func (l *Line) serveLane() {
	close(l.ready)
	l.running.Go(func() { l.read(l.channel, l.events.Lane) })
}

// Lane is closed once channel lane is there.
func (l *lane) Lane() <-chan struct{} { return l.ready }

// Room says whether SCTP takes n more bytes of channel lane: as long as no more than about one message waits for its own window. Less
// must not be asked for: SCTP lets its window grow only while something waits. behind is how many bytes wait already.
func (l *lane) Room(n int) (behind int, ok bool) {
	held, window := l.over.BufferedAmount(), int(l.over.CWND())
	return max(held-window, 0), held+n <= window+largestLane
}

// SendBackground hands a message to channel lane; false says that the line has ended.
func (l *lane) SendBackground(message []byte) bool {
	_, err := l.channel.Write(message)
	return err == nil
}

// SendAck hands an ack to channel lane.
func (l *lane) SendAck(message []byte) { l.SendBackground(message) }

// Payload is how many bytes of a message one packet carries.
func (l *lane) Payload() int {
	return webrtcend.Payload(l.over)
}

// MaxMessage is the largest message of channel lane, bytes.
func (*lane) MaxMessage() int { return largestLane }
