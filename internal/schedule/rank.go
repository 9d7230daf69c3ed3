package schedule

// Rank is the hash by which peers agree, without messages, on which of them asks a seed for which piece (spec/schedule.md, rule 7). IDs are
// hexadecimal; what is not counts as zero bits.
func Rank(segment string, piece int, peer string) uint32 {
	h := uint32(0x811c9dc5)
	mix := func(b byte) { h = (h ^ uint32(b)) * 0x01000193 }
	for i := 0; i+1 < len(segment); i += 2 {
		mix(unhex(segment[i])<<4 | unhex(segment[i+1]))
	}
	mix(byte(piece >> 8))
	mix(byte(piece))
	for i := 0; i+1 < len(peer); i += 2 {
		mix(unhex(peer[i])<<4 | unhex(peer[i+1]))
	}
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	h ^= h >> 16
	return h
}

func unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 0
}

// owner is the one of the lowest rank among self and peers; ties by ID.
func owner(segment string, piece int, self string, peers []*peer) string {
	best, low := self, Rank(segment, piece, self)
	for _, p := range peers {
		if r := Rank(segment, piece, p.ID); r < low || r == low && p.ID < best {
			best, low = p.ID, r
		}
	}
	return best
}
