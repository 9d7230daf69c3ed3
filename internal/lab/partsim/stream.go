package partsim

const (
	second = 1e6
	// pieceSize is the unit of verification and of messages, bytes.
	pieceSize = 16 << 10
	// holdBack is how far behind the last published part a player begins, in parts (RFC 8216bis, PART-HOLD-BACK).
	holdBack = 3
)

// shape is how large the segments of a real film are, against the largest; segmentBytes is the largest of 2 s, a rendition.
var (
	shape        = []float64{0.88, 0.86, 0.88, 0.86, 0.38, 0.71, 0.84, 1, 0.8, 0.88, 0.9, 0.57, 0.47, 0.86, 0.9}
	segmentBytes = []float64{121_431, 253_067, 469_340}
)

// stream is a live stream in parts. The first part of a segment has a key frame and twice the bytes of another.
type stream struct {
	perSegment int
	part       int64                        // how long one plays, µs
	late       func(part, time int64) int64 // how much later than it should the origin publishes the part of a time, µs; nil: not
}

func (s *stream) size(rendition, part int) int {
	n := float64(s.perSegment)
	whole := segmentBytes[rendition] * shape[part/s.perSegment%len(shape)] * n * float64(s.part) / 2e6
	if part%s.perSegment == 0 {
		return int(whole * 2 / (n + 1))
	}
	return int(whole / (n + 1))
}

// published is when a part is at the origin, with its place in the playlist.
func (s *stream) published(part int) int64 {
	at := int64(part+1) * s.part
	if s.late != nil {
		at += s.late(int64(part), s.part)
	}
	return at
}

// edge is how many parts there are at a moment.
func (s *stream) edge(now int64) int {
	n := int(now / s.part)
	for n > 0 && s.published(n-1) > now {
		n--
	}
	return n
}

func pieces(size int) int { return (size + pieceSize - 1) / pieceSize }

func pieceBytes(size, i int) int { return min(pieceSize, size-i*pieceSize) }
