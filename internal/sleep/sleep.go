// Package sleep waits for a time, or until something has ended.
package sleep

import (
	"context"
	"time"
)

// For waits, and says whether there is reason to go on: ctx has not ended.
func For(ctx context.Context, d time.Duration) bool { return Until(ctx.Done(), d) }

// Until waits for d, or until end is closed if that is sooner. It says whether end is still open.
func Until(end <-chan struct{}, d time.Duration) bool {
	select {
	case <-end:
		return false
	case <-time.After(d):
	}
	select {
	case <-end: // both have come at once
		return false
	default:
		return true
	}
}
