//go:build !linux

package qualitylink

import "net"

// readMarks: other systems tell and set marks in other forms.
func readMarks(*net.UDPConn) bool { return false }

func markOf([]byte) int { return -1 }

func markFor(int, bool) []byte { return nil }
