package quality

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/leeway-video/leeway/internal/netstat"
)

// Control is a message of the control channel: Run, Load, Ready, Sent, Record, End or Error.
type Control interface{ kind() string }

// Direction says which way the messages of a stream go.
type Direction string

// The directions.
const (
	Up   Direction = "up"
	Down Direction = "down"
	Both Direction = "echo"
)

// Run asks for a stream.
type Run struct {
	Stream    uint16    `json:"stream"`
	Direction Direction `json:"direction"`
	Messages  int64     `json:"messages"`
	Interval  int64     `json:"interval_us"` // µs
	Size      int64     `json:"size"`        // bytes
}

// Load asks for a load that gives way.
type Load struct {
	Stream    uint16    `json:"stream"`
	Direction Direction `json:"direction"` // Up or Down
	Time      int64     `json:"time_us"`   // µs
}

// Ready says that a stream begins.
type Ready struct {
	Stream uint16 `json:"stream"`
}

// Sent says that the last message of a stream is out.
type Sent struct {
	Stream uint16 `json:"stream"`
}

// Record is a part of what the server's record of a stream has.
type Record struct {
	Stream   uint16
	Arrivals []netstat.Arrival
}

// Mark is how many packets came with a DSCP.
type Mark struct {
	DSCP    int64
	Packets int64
}

// End says that a stream is over at the server.
type End struct {
	Stream uint16
	Marks  []Mark // nil: the server cannot tell
}

// Code says why a stream or the connection is refused: a closed set.
type Code string

// The codes.
const (
	CodeLimit     Code = "limit"
	CodeMalformed Code = "malformed"
	CodeBusy      Code = "busy"
	CodeBytes     Code = "bytes"
	CodeEnding    Code = "ending"
)

// Error refuses a stream, or ends the connection.
type Error struct {
	Stream *uint16 `json:"stream,omitempty"` // nil: it is about the connection
	Code   Code    `json:"code"`
	Text   string  `json:"text"`
}

func (Run) kind() string    { return "run" }
func (Load) kind() string   { return "load" }
func (Ready) kind() string  { return "ready" }
func (Sent) kind() string   { return "sent" }
func (Record) kind() string { return "record" }
func (End) kind() string    { return "end" }
func (Error) kind() string  { return "error" }

// Check says what is wrong with a request for a stream; nil: nothing.
func (r Run) Check() error {
	switch {
	case r.Direction != Up && r.Direction != Down && r.Direction != Both:
		return badField("direction")
	case r.Messages < 1 || r.Messages > MaxMessages:
		return badField("messages")
	case r.Interval < MinInterval || r.Interval > MaxTime || r.Messages*r.Interval > MaxTime:
		return badField("interval_us")
	case r.Size < ProbeSize || r.Size > MaxSize:
		return badField("size")
	}
	return nil
}

// Check says what is wrong with a request for a load; nil: nothing.
func (l Load) Check() error {
	switch {
	case l.Direction != Up && l.Direction != Down:
		return badField("direction")
	case l.Time < MinLoad || l.Time > MaxLoad:
		return badField("time_us")
	}
	return nil
}

// Due is how many messages of a stream are to have been sent so many µs after its beginning, those at its end included.
func (r Run) Due(elapsed int64) int64 {
	return min(r.Messages+Tail, elapsed/r.Interval+1)
}

// MarshalJSON writes arrivals as lists.
func (r Record) MarshalJSON() ([]byte, error) {
	b := fmt.Appendf(nil, `{"stream":%d,"arrivals":[`, r.Stream)
	for i, a := range r.Arrivals {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "[%d,%d,%d]", a.Sequence, a.Sent, a.Received)
	}
	return append(b, "]}"...), nil
}

// MarshalJSON writes marks as lists.
func (e End) MarshalJSON() ([]byte, error) {
	b := fmt.Appendf(nil, `{"stream":%d`, e.Stream)
	if e.Marks != nil {
		b = append(b, `,"marks":[`...)
		for i, m := range e.Marks {
			if i > 0 {
				b = append(b, ',')
			}
			b = fmt.Appendf(b, "[%d,%d]", m.DSCP, m.Packets)
		}
		b = append(b, ']')
	}
	return append(b, '}'), nil
}

// EncodeControl writes a message, its type first. The message must be within its limits.
func EncodeControl(c Control) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"type":%q,`, c.kind())
	head := out.Len()
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(c); err != nil {
		return nil, fmt.Errorf("quality: encode %s: %w", c.kind(), err)
	}
	b := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	return append(b[:head], b[head+1:]...), nil // without the brace of the inner object
}
