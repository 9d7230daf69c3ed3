package originhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/leeway-video/leeway/internal/seed"
)

const flowBuffer = 32 << 10 // bytes that are read at a time

// errSilent is a body that has brought nothing for too long.
var errSilent = errors.New("the origin sends nothing more")

// Flow implements seed.Origin.
func (c *Client) Flow(ctx context.Context, f seed.Fetch, take func([]byte) error) (*seed.Fetched, error) {
	f.Shared, f.Ranged, f.Validator = true, false, ""
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	resp, err := c.ask(ctx, f)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // what was needed has been read
	got := c.described(resp)
	got.Sized, got.Clock = resp.ContentLength >= 0, clockOf(resp.Header, time.Now())
	quiet := time.AfterFunc(c.silence, func() { cancel(fmt.Errorf("%w for %v", errSilent, c.silence)) })
	defer quiet.Stop()
	for buffer := make([]byte, flowBuffer); ; quiet.Reset(c.silence) {
		n, err := resp.Body.Read(buffer)
		quiet.Stop() // the time in which bytes are taken is not the origin's
		fits := int(min(int64(n), f.MaxBytes-got.ObjectLength))
		got.ObjectLength += int64(fits)
		if fits > 0 {
			if err := take(buffer[:fits]); err != nil {
				return nil, err
			}
		}
		switch {
		case n > fits:
			return nil, failed(f, seed.OutcomeTooLarge, &tooLargeError{max(resp.ContentLength, 0)})
		case err == io.EOF:
			return got, nil
		case ctx.Err() != nil:
			return nil, failed(f, seed.OutcomeTimeout, context.Cause(ctx))
		case err != nil:
			return nil, failed(f, outcomeOf(ctx, err), cause(err))
		}
	}
}
