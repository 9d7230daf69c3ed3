package playlist

import "time"

// Parts are the parts of a low-latency media playlist, under the names by which peers know them (spec/parts.md).
type Parts struct {
	Target time.Duration // longest part
	Blocks bool          // a request for a playlist that is not there yet waits for it
	Listed []PartEntry   // the oldest first; parts without media, and those of other sites, are left out

	// Hint is the part that comes next; nil: the playlist does not say, or it is not the site's. Last is -1, and Name is empty, where
	// the playlist does not say where the range ends.
	Hint *Entry
	// NextSequence and NextPart are the _HLS_msn and _HLS_part with which a request for the playlist waits for the next part.
	NextSequence int64
	NextPart     int
}

// PartEntry is a part, and its number.
type PartEntry struct {
	Entry
	Sequence int64 // media sequence number of its segment
	Part     int   // number in its segment, from 0
}

func (r resolver) parts(m *Media) *Parts {
	low := m.LowLatency
	if low == nil {
		return nil
	}
	out := &Parts{Target: low.PartTarget, Blocks: low.Blocks}
	out.NextSequence, out.NextPart = m.Next()
	add := func(sequence int64, parts []Part) {
		for i, p := range parts {
			if e, ok := r.entry(p.Object); ok && !p.Gap {
				out.Listed = append(out.Listed, PartEntry{Entry: e, Sequence: sequence, Part: i})
			}
		}
	}
	for i, s := range m.Segments {
		add(m.Sequence+int64(i), s.Parts)
	}
	if g := low.Growing; g != nil {
		add(out.NextSequence, g.Parts)
	}
	if low.Hint != nil {
		out.Hint = r.hint(*low.Hint)
	}
	return out
}

func (r resolver) hint(o Object) *Entry {
	if o.Offset > 0 && o.Length == 0 {
		if _, path, ok := r.resolve(o.URI); ok {
			return &Entry{Path: path, Ranged: true, First: o.Offset, Last: -1}
		}
		return nil
	}
	if e, ok := r.entry(o); ok {
		return &e
	}
	return nil
}
