// Package pause waits for a while or until there is no reason to any more.
package pause

import (
	"context"
	"time"
)

// For waits, and says whether there is reason to go on: ctx has not ended.
func For(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return ctx.Err() == nil // both may have come at once
	}
}
