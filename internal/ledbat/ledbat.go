// Package ledbat is the controller of the background transport: LEDBAT++ for a host whose many links share one uplink, driven
// by acks of the application. spec/background-transport.md has every rule and constant.
//
// The package is pure: time is an argument, in µs of a clock of the caller that never goes back; nothing runs beside
// the caller and nothing is locked. All numbers are integers (µs, bytes), so that the TypeScript twin agrees to the
// bit (spec/vectors/background.json).
//
//   - Sender is a sending host: one window that all links share. A Path is one of its links: delay filters, the
//     messages in flight, and a cap for a link that is itself the bottleneck.
//   - Acker is the other end of a Path: it hears of messages and makes acks.
//   - Receiver is the host that requests: the same controller over the bytes it has asked for in the background lane. A
//     Source is one of its links.
//
// Sizes count whole messages as they are handed to a data channel, header included.
package ledbat

// The constants of the controller; docs/experiments/background-transport.md has the reasons.
const (
	Packet        = 1200 // bytes; the unit of growth and of the floor
	InitialWindow = 10 * Packet
	MinWindow     = Packet / 16
	MaxWindow     = 16 << 20

	MinTarget = 15_000 // µs
	MaxTarget = 60_000 // µs

	MaxMessage  = 16_384    // bytes; also what a piece has
	MessageTime = 7_000     // µs of pacing rate in one message
	MaxInterval = 1_000_000 // µs that pacing puts between two messages at most

	never = 1 << 52 // a moment or a delay that is not known
)

// State is the phase that a controller is in.
type State string

// The states. Both controllers use slow-start and avoidance; the other two are LEDBAT++'s periodic slowdown.
const (
	SlowStart State = "slow-start"
	Avoidance State = "avoidance"
	Slowdown  State = "slowdown" // the window is held down so that the queue drains and the base can be seen
	Ramp      State = "ramp"     // slow start back to where the slowdown began
)

// Signal is what a controller hears with an ack, a loss or a timeout.
type Signal struct {
	Now     int64
	Acked   int64 // bytes
	Queuing int64 // queuing delay, filtered
	Target  int64 // target of the adapted kind, half the base delay within bounds; a controller may have its own
	Base    int64 // base delay, of the round trip
	RTT     int64 // smoothed round-trip time
	Limited bool  // the window was hit within the last round trip: only then may it grow
	Parts   int64 // among how many controllers on this line the growth is divided: tabs of one browser
}

// Controller turns signals into a window. A Sender has one for the host; a Path has one for its cap.
type Controller interface {
	OnAck(Signal)
	OnLoss(Signal)    // once per message that is lost; a controller reacts at most once per round trip
	OnTimeout(Signal) // nothing was heard for a retransmission timeout
	OnIdle(Signal)    // first message after nothing was in flight for long
	Window() int64    // bytes
	State() State
	Slowdowns() int64
}

// Config makes hosts. The zero value is the controller of the spec.
type Config struct {
	// Controller makes the controller of the host (host true) and the caps of its paths (host false; nil for no cap).
	// nil: LEDBAT++ as the spec has it.
	Controller func(host bool) Controller
}

// PathConfig describes a link.
type PathConfig struct {
	// Payload is what one packet of the association carries of a message, in bytes; messages are multiples of it. 0 is Packet.
	Payload int64
	// MaxMessage is the largest message of the channel plan, in bytes. 0 is MaxMessage.
	MaxMessage int64
	// Base is the base delay (µs, round trip) of this route from an earlier link to the same peer; 0 is unknown.
	Base int64
}

// Stamp is what travels in the header of a background data message.
type Stamp struct {
	Sequence uint32 // per link and direction, from 0, wrapping
	SentAt   uint32 // µs of the sender's clock, wrapping
	Echo     uint32 // µs of the receiver's clock: send time of the newest ack plus the time since it came
	Echoes   bool   // Echo is valid
	AckNow   bool   // the sender will wait for this message's ack
}

// Outcome is what an ack did.
type Outcome struct {
	Acked, Lost int64   // bytes
	Messages    int64   // messages acked
	Sampled     bool    // the ack gave a delay sample
	RTT         int64   // of that sample
	Problem     Problem // not "": the ack is impossible and nothing was taken from it
}

// Problem says why an ack cannot be.
type Problem string

// The problems.
const (
	ProblemFuture     Problem = "future"     // acks what was never sent
	ProblemCumulative Problem = "cumulative" // cumulative lies above highest + 1
)

// Stats is the state of a host, for metrics.
type Stats struct {
	State      State
	Window     int64 // bytes
	Flight     int64 // flight size, bytes
	PacingRate int64 // bytes/s
	Queuing    int64 // µs
	Target     int64 // µs
	Base       int64 // µs; 0 while unknown
	RTT        int64 // µs, smoothed; 0 while unknown
	Slowdowns  int64
	Yields     int64 // times the window fell to the floor for delay
	Losses     int64 // bytes
	Timeouts   int64
}
