package quality

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/leeway-video/leeway/internal/netstat"
)

// members are those of one object, by their exact names.
type members map[string]json.RawMessage

// DecodeControl reads a message of the control channel. Its error is a *MalformedError.
func DecodeControl(b []byte) (Control, error) {
	if len(b) > MaxControl {
		return nil, malformed(ReasonLong)
	}
	var m members
	if !utf8.Valid(b) || json.Unmarshal(b, &m) != nil || m == nil {
		return nil, malformed(ReasonJSON)
	}
	kind, _ := m.text("type")
	stream, known := m.integer("stream", 0, 1<<16-1)
	var c Control
	var err error
	switch kind {
	case "run":
		c, err = m.run(uint16(stream), known)
	case "load":
		c, err = m.load(uint16(stream))
	case "ready":
		c = Ready{uint16(stream)}
	case "sent":
		c = Sent{uint16(stream)}
	case "record":
		c, err = m.record(uint16(stream), known)
	case "end":
		c, err = m.end(uint16(stream), known)
	case "error":
		return m.refusal(uint16(stream), known)
	default:
		return nil, malformed(ReasonType)
	}
	if !known {
		err = badField("stream")
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (m members) run(stream uint16, known bool) (Control, error) {
	if !known {
		return nil, nil
	}
	r := Run{Stream: stream}
	direction, _ := m.text("direction")
	r.Direction = Direction(direction)
	r.Messages, _ = m.integer("messages", 1, MaxMessages) // 0 is out of every range
	r.Interval, _ = m.integer("interval_us", 1, MaxTime)
	r.Size, _ = m.integer("size", 1, MaxSize)
	return r, r.Check()
}

func (m members) load(stream uint16) (Control, error) {
	l := Load{Stream: stream}
	direction, _ := m.text("direction")
	l.Direction = Direction(direction)
	l.Time, _ = m.integer("time_us", 1, MaxLoad) // 0 is out of every range
	return l, l.Check()
}

func (m members) record(stream uint16, known bool) (Control, error) {
	if !known {
		return nil, nil
	}
	rows, ok := rowsOf(m["arrivals"], MaxArrivals, MaxMessages-1, MaxClock, MaxClock)
	if !ok || len(rows) == 0 {
		return nil, badField("arrivals")
	}
	r := Record{Stream: stream, Arrivals: make([]netstat.Arrival, len(rows))}
	for i, row := range rows {
		r.Arrivals[i] = netstat.Arrival{Sequence: row[0], Sent: row[1], Received: row[2]}
	}
	return r, nil
}

func (m members) end(stream uint16, known bool) (Control, error) {
	e := End{Stream: stream}
	raw, there := m["marks"]
	if !known || !there {
		return e, nil
	}
	rows, ok := rowsOf(raw, MaxMarks, MaxDSCP, MaxClock)
	if !ok {
		return nil, badField("marks")
	}
	e.Marks = make([]Mark, len(rows))
	for i, row := range rows {
		if e.Marks[i] = (Mark{row[0], row[1]}); row[1] == 0 {
			return nil, badField("marks")
		}
	}
	return e, nil
}

func (m members) refusal(stream uint16, known bool) (Control, error) {
	var e Error
	if _, there := m["stream"]; there {
		if !known {
			return nil, badField("stream")
		}
		e.Stream = &stream
	}
	code, _ := m.text("code")
	switch e.Code = Code(code); e.Code {
	case CodeLimit, CodeMalformed, CodeBusy, CodeBytes, CodeEnding:
	default:
		return nil, badField("code")
	}
	var ok bool
	if e.Text, ok = m.text("text"); !ok {
		return nil, badField("text")
	}
	return e, nil
}

// text is a member that is a string.
func (m members) text(name string) (s string, ok bool) {
	raw := m[name]
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	return s, json.Unmarshal(raw, &s) == nil
}

func (m members) integer(name string, least, most int64) (int64, bool) {
	return integer(m[name], least, most)
}

// integer reads a number that is whole, in any spelling.
func integer(raw json.RawMessage, least, most int64) (int64, bool) {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || !(f >= float64(least) && f <= float64(most)) || f != float64(int64(f)) {
		return 0, false
	}
	return int64(f), true
}

// rowsOf reads a list of at most so many lists of integers, each from 0 to the bound of its column.
func rowsOf(raw json.RawMessage, atMost int, bounds ...int64) ([][]int64, bool) {
	var lists []json.RawMessage
	if json.Unmarshal(raw, &lists) != nil || lists == nil || len(lists) > atMost {
		return nil, false
	}
	rows := make([][]int64, len(lists))
	for i, list := range lists {
		var cells []json.RawMessage
		if json.Unmarshal(list, &cells) != nil || len(cells) != len(bounds) {
			return nil, false
		}
		rows[i] = make([]int64, len(bounds))
		for k, cell := range cells {
			var ok bool
			if rows[i][k], ok = integer(cell, 0, bounds[k]); !ok {
				return nil, false
			}
		}
	}
	return rows, true
}
