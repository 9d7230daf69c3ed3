package netlab

// Attach adds a host with an access line to a router: in most labs, every viewer behind one core.
func (l *Lab) Attach(name string, core *Router, access Path) (*Host, *Line) {
	h := l.Host(name)
	return h, l.Connect(h, core, access)
}
