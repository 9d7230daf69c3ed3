package mpd

import (
	"encoding/binary"
	"math"
)

// MaxIndex bounds a segment index, bytes: more references than it may have do not fit.
const MaxIndex = 1 << 20

// Segments reads the segment index that an Index leads to, and returns the ranges that it names. They are of the same object.
func (x Index) Segments(data []byte) ([]Segment, error) {
	box, end, err := x.box(data)
	if err != nil {
		return nil, err
	}
	short := refuse(Malformed, "a segment index of %d bytes", len(box))
	wide := 8 // bytes of the earliest time and of the first offset together
	if len(box) < 12 {
		return nil, short
	}
	if box[0] != 0 {
		wide = 16
	}
	if len(box) < 12+wide+4 {
		return nil, short
	}
	scale := uint64(binary.BigEndian.Uint32(box[8:]))
	begins, offset := uint64(binary.BigEndian.Uint32(box[12:])), uint64(binary.BigEndian.Uint32(box[16:]))
	if wide == 16 {
		begins, offset = binary.BigEndian.Uint64(box[12:]), binary.BigEndian.Uint64(box[20:])
	}
	rest := box[12+wide:]
	count := int(binary.BigEndian.Uint16(rest[2:]))
	rest = rest[4:]
	if len(rest) < 12*count || scale == 0 || offset > maxOffset {
		return nil, short
	}
	first := end + int64(offset)
	all := make([]Segment, 0, count)
	for i := range count {
		size, d := binary.BigEndian.Uint32(rest[12*i:]), binary.BigEndian.Uint32(rest[12*i+4:])
		if size>>31 != 0 {
			return nil, refuse(NoIndex, "a segment index that names further indexes")
		}
		if size == 0 || first+int64(size) > maxOffset {
			return nil, refuse(Malformed, "a segment of %d bytes at %d", size, first)
		}
		s := Segment{Object: x.Object, Start: later(x.zero, span(begins, scale)), Duration: span(uint64(d), scale)}
		begins += min(uint64(d), math.MaxUint64-begins)
		s.First, s.Last = first, first+int64(size)-1
		first += int64(size)
		all = append(all, s)
	}
	return all, nil
}

// box is the content of the first sidx box, and where in the object the box ends.
func (x Index) box(data []byte) (content []byte, end int64, err error) {
	at := 0
	for at+8 <= len(data) {
		size := uint64(binary.BigEndian.Uint32(data[at:]))
		head := 8
		if size == 1 && at+16 <= len(data) {
			size, head = binary.BigEndian.Uint64(data[at+8:]), 16
		}
		if size < uint64(head) || size > uint64(len(data)-at) {
			break
		}
		if string(data[at+4:at+8]) == "sidx" {
			return data[at+head : at+int(size)], x.First + int64(at) + int64(size), nil
		}
		at += int(size)
	}
	return nil, 0, refuse(NoIndex, "there is no segment index at %d-%d of %.64q", x.First, x.Last, x.URL.Path)
}
