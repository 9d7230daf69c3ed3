package swarmbench

import "os"

// targetsVariable, if it is set, names a file that is written for a Prometheus (file_sd_configs): it can then scrape the servers
// of the trace with Leeway while that is played.
const targetsVariable = "LEEWAY_BENCH_TARGETS"

func (s *stage) scraped() (stop func() error, err error) {
	file := os.Getenv(targetsVariable)
	if file == "" {
		return func() error { return nil }, nil
	}
	return s.servers.Scraped(file)
}
