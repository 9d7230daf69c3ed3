package transportbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/leeway-video/leeway/internal/lab/bench"
)

// stack is one end of a flow's links. Calls come from one goroutine.
type stack interface {
	begin(link int) error            // the receiver's: offer a link
	handle(link int, s signal) error // what the other end says
	start()                          // send, or ask, until close
	burst(bytes int)                 // the receiver's: ask for a foreground segment
	close() error
}

// place is what a stack knows and reports to.
type place struct {
	setup setup
	say   func(message)
}

// end is the role of a child process: one end of a flow's links.
func end(ctx context.Context, in *json.Decoder, out *bench.Writer) error {
	var s setup
	if err := in.Decode(&s); err != nil {
		return fmt.Errorf("transport end: setup: %w", err)
	}
	p := place{setup: s, say: func(m message) { _ = out.Write(m) }}
	st, err := newStack(ctx, p)
	if err != nil {
		return err
	}
	if !s.Send {
		for i := range s.Links {
			if err := st.begin(i); err != nil {
				return errors.Join(err, st.close())
			}
		}
	}
	return errors.Join(bench.Obey(in, func(m message) error { return obey(m, st) }), st.close())
}

func newStack(ctx context.Context, p place) (stack, error) {
	switch {
	case p.setup.Page != noPage:
		return newPageStack(ctx, p)
	case p.setup.Kind == plain:
		return newPlainStack(p)
	}
	return newLinkStack(ctx, p)
}

// obey does what the parent says.
func obey(m message, st stack) error {
	switch m.Type {
	case saySignal:
		if err := st.handle(m.Link, *m.Signal); err != nil {
			return fmt.Errorf("transport end: link %d: %w", m.Link, err)
		}
	case sayStart:
		st.start()
	case sayBurst:
		st.burst(m.Bytes)
	}
	return nil
}
