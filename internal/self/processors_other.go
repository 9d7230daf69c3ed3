//go:build !unix

package self

import "time"

// Processors is the processor time that this process has used; 0: the system does not say.
func Processors() time.Duration { return 0 }
