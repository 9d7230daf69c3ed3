package cmaf

import (
	"encoding/binary"
	"fmt"
)

// CutError is why a segment is not cut into chunks any further.
type CutError struct {
	At     int64 // where in the segment the box begins
	Detail string
}

func (e *CutError) Error() string {
	return fmt.Sprintf("cmaf: cut a segment into chunks: the box at %d %s", e.At, e.Detail)
}

// maxBox bounds a box, bytes: its end is a number that each language has.
const maxBox = 1 << 52

// Cutter finds where the chunks of a segment end while its bytes come: behind each mdat box that follows a moof box. It keeps no more of
// them than the head of a box. The zero value is at the beginning of a segment.
type Cutter struct {
	at    int64    // of the box that comes, or comes next
	end   int64    // of that box; 0: its head is not there yet
	come  int64    // bytes of the segment
	head  [16]byte // of the box
	begun int      // bytes of the head that are there
	moof  bool     // one has come since the last mdat
	any   bool     // chunk has ended
	err   error
}

// Add takes the bytes that come next, and returns where chunks end that are there by now. The error, which is a *CutError, stays.
func (c *Cutter) Add(data []byte) (ends []int64, err error) {
	for len(data) > 0 && c.err == nil {
		n := 0
		if c.end == 0 {
			n = copy(c.head[c.begun:c.heads()], data)
			c.begun += n
		} else {
			n = int(min(int64(len(data)), c.end-c.come))
		}
		c.come, data = c.come+int64(n), data[n:]
		if c.end == 0 {
			c.measure()
		}
		if c.end == c.come && c.over() {
			ends = append(ends, c.come)
		}
	}
	return ends, c.err
}

// heads is how long the head of the box is, as far as it is known.
func (c *Cutter) heads() int {
	if c.begun >= 8 && binary.BigEndian.Uint32(c.head[:]) == 1 {
		return 16
	}
	return 8
}

// measure finds the end of the box once its head is there.
func (c *Cutter) measure() {
	head := c.heads()
	if c.begun < head {
		return
	}
	size := uint64(binary.BigEndian.Uint32(c.head[:]))
	if head == 16 {
		size = binary.BigEndian.Uint64(c.head[8:])
	}
	kind := string(c.head[4:8])
	switch {
	case size == 0:
		c.err = &CutError{c.at, "ends with the segment: while that is made its end is not known"}
	case size < uint64(head) || size > maxBox || c.at > maxBox:
		c.err = &CutError{c.at, fmt.Sprintf("has %d bytes", size)}
	case kind == "mdat" && !c.moof:
		c.err = &CutError{c.at, "is media without a moof box"}
	default:
		c.end = c.at + int64(size)
	}
}

// over begins the next box, and says whether a chunk has ended with the last one.
func (c *Cutter) over() (chunk bool) {
	kind := string(c.head[4:8])
	c.at, c.end, c.begun = c.end, 0, 0
	chunk = kind == "mdat"
	c.moof = !chunk && (c.moof || kind == "moof")
	c.any = c.any || chunk
	return chunk
}

// Whole says whether what has come is a segment: it has a chunk, and ends between two boxes, with no moof box that waits for its media.
func (c *Cutter) Whole() bool { return c.err == nil && c.any && c.begun == 0 && !c.moof }
