package netlab

import "fmt"

// Dumbbell is the topology of congestion experiments: two groups of hosts on both sides of one line.
type Dumbbell struct {
	Left, Right []*Host
	// Bottleneck joins the two sides: Up carries what the left sends, Down what it receives.
	Bottleneck *Line
}

// Dumbbell adds n hosts on each side, left-1 … left-n and right-1 … right-n, with access lines of their own.
func (l *Lab) Dumbbell(n int, bottleneck, access Path) *Dumbbell {
	left, right := l.Router("left"), l.Router("right")
	d := &Dumbbell{Bottleneck: l.Connect(left, right, bottleneck)}
	for i := range n {
		d.Left = append(d.Left, l.Host(fmt.Sprintf("left-%d", i+1)))
		d.Right = append(d.Right, l.Host(fmt.Sprintf("right-%d", i+1)))
		l.Connect(d.Left[i], left, access)
		l.Connect(d.Right[i], right, access)
	}
	return d
}

// Attach adds a host with an access line to a router: in most labs, every viewer behind one core.
func (l *Lab) Attach(name string, core *Router, access Path) (*Host, *Line) {
	h := l.Host(name)
	return h, l.Connect(h, core, access)
}
