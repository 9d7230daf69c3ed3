package peer

import "errors"

// Why a message does not fit into its piece.
var (
	ErrBeyond  = errors.New("data beyond the end of its piece")
	ErrCrumbs  = errors.New("a piece in too many messages")
	ErrOverlap = errors.New("data overlaps what was there")
)

// Assembly is a piece that comes together from messages. The zero value is a piece of which nothing has come.
type Assembly struct {
	Data     []byte // the piece; nil before the first message, since many requests end before one comes
	Received int    // bytes of it that have come
	spans    []span // one a message
}

type span struct{ from, to int }

// Add puts a message in its place in a piece of so many bytes.
func (a *Assembly) Add(m Data, length int) error {
	from, to := int(m.Offset), int(m.Offset)+len(m.Payload)
	if to > length {
		return ErrBeyond
	}
	if len(a.spans) == MaxPieceMessages {
		return ErrCrumbs
	}
	for _, s := range a.spans {
		if from < s.to && s.from < to {
			return ErrOverlap
		}
	}
	if a.Data == nil {
		a.Data = make([]byte, length)
	}
	a.spans = append(a.spans, span{from, to})
	copy(a.Data[from:], m.Payload)
	a.Received += len(m.Payload)
	return nil
}

// Messages is how many the piece has come in.
func (a *Assembly) Messages() int { return len(a.spans) }
