//go:build !unix

package app

import "time"

func processorTime() (time.Duration, bool) { return 0, false }
