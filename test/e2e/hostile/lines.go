package main

import "strings"

// Candidates of --lf: those of a public address show what comes through, the others are of hosts beside the victim.
var (
	described = []string{host("198.51.100.7"), host("10.77.0.99"), host("192.168.77.99"), host("fd00::99")}
	trickled  = []string{host("198.51.100.8"), host("10.77.0.98"), host("198.51.100.9") + "\na=" + host("10.77.0.97")}
)

func host(address string) string {
	return "candidate:1 1 udp 2130706431 " + address + " 9 typ host"
}

// inLines is a description whose lines end with LF, and whose candidates are others.
func inLines(sdp string) string {
	var out []string
	for _, line := range strings.Split(strings.TrimSpace(strings.ReplaceAll(sdp, "\r\n", "\n")), "\n") {
		if !strings.HasPrefix(line, "a=candidate:") && line != "a=end-of-candidates" {
			out = append(out, line)
		}
	}
	for _, c := range described {
		out = append(out, "a="+c)
	}
	return strings.Join(out, "\n") + "\n"
}
