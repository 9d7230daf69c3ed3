package proc

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Family is a process that is there, and everything below it: a browser is many.
func Family(root int) []int {
	parents := map[int]int{}
	entries, _ := os.ReadDir("/proc") // elsewhere than on Linux there is none
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		// Behind the name, which may hold anything, come the state and the parent.
		if fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])); len(fields) > 1 {
			parents[pid], _ = strconv.Atoi(fields[1])
		}
	}
	var family []int
	for pid := range parents {
		for up, hops := pid, 0; up > 1 && hops < len(parents); up, hops = parents[up], hops+1 {
			if up == root {
				family = append(family, pid)
				break
			}
		}
	}
	slices.Sort(family)
	return family
}
