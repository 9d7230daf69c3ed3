package ledbat

// Late says whether what is in flight on the link is not counted as the host's.
func (p *Path) Late() bool { return p.late }
