package pairing

import "testing"

// TestAnEndDrainsBeforeItsLinkHasOpened: the first messages of the channels themselves may be acknowledged that early.
func TestAnEndDrainsBeforeItsLinkHasOpened(*testing.T) { new(Serving).Drain() }
