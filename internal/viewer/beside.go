package viewer

import "github.com/leeway-video/leeway/internal/background"

// What a download costs the uplink (spec/background-transport.md, Besides): SCTP acknowledges every second packet, and we
// every second message.
const (
	packetBytes = 1156 // of a message in a packet
	sackBytes   = 47   // half a packet that has nothing but an acknowledgement in it
	ackAround   = 100  // what is around a message of the ack channel
	tcpPart     = 44   // of what comes by TCP: 66 bytes for two packets of 1,448
)

// acking is a link whose acks the controller of the host hears of.
type acking struct {
	background.Link
	sender *background.Sender
}

// SendAck implements background.Link.
func (a acking) SendAck(message []byte) {
	a.Link.SendAck(message)
	a.sender.Beside(len(message) + ackAround)
}

// took has the controller of the host hear what it costs to take n bytes of a link. In the link's goroutine.
func (a acking) took(n int) { a.sender.Beside((n + packetBytes - 1) / packetBytes * sackBytes) }
