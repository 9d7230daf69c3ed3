package signal

import "encoding/json"

// Size is what a revocation adds to the bytes of a list.
func (r Revocation) Size() int {
	b, err := json.Marshal(r)
	if err != nil {
		return MaxMessage // never: bytes, text and a number
	}
	return len(b) + 1
}

// Parts cuts a list of revocations so that each part takes at most so many bytes; at least one, which may be empty.
func Parts(list []Revocation, most int) [][]Revocation {
	out, size := [][]Revocation{{}}, 0
	for _, r := range list {
		n := r.Size()
		if size+n > most {
			out, size = append(out, nil), 0
		}
		out[len(out)-1], size = append(out[len(out)-1], r), size+n
	}
	return out
}
