package netlab

import (
	"errors"
	"fmt"

	"github.com/leeway-video/leeway/internal/lab/netlab/emulator"
)

// config describes the network to the emulator.
func (l *Lab) config() (emulator.Config, error) {
	cfg := emulator.Config{Links: l.links}
	var errs []error
	ports := map[*node]int{}
	for _, s := range l.spots {
		if s.node == nil {
			continue // behind a gateway
		}
		s.node.port = len(cfg.Ports)
		ports[s.node] = s.node.port
		cfg.Ports = append(cfg.Ports, emulator.Port{Name: s.name, Addresses: s.public()})
		if len(s.node.lines) == 0 {
			errs = append(errs, fmt.Errorf("%s is not connected to anything", s.name))
		}
	}
	for n, port := range ports {
		cfg.Ports[port].Routes = routes(n)
	}
	for _, s := range l.spots {
		cfg.Namespaces = append(cfg.Namespaces, l.owner.Space(s.name))
	}
	return cfg, errors.Join(errs...)
}

// routes finds, for every other leaf, the links of a way with the fewest lines.
func routes(from *node) map[int][]int {
	ways := map[*node][]int{from: nil}
	found := map[int][]int{}
	for next := []*node{from}; len(next) > 0; next = next[1:] {
		n := next[0]
		if n.leaf && n != from {
			found[n.port] = ways[n]
			continue
		}
		for _, line := range n.lines {
			to, direction := line.b, line.Up
			if line.b == n {
				to, direction = line.a, line.Down
			}
			if _, seen := ways[to]; !seen {
				ways[to] = append(append([]int{}, ways[n]...), direction.index)
				next = append(next, to)
			}
		}
	}
	return found
}
