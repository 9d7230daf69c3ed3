// Package cmaf reads fragmented MP4 as it comes: the header, and then chunks, of which each is a moof box with its mdat
// (ISO/IEC 14496-12 and 23000-19). It knows as much of them as is needed to publish them as parts.
package cmaf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// Bounds of what is read.
const (
	MaxHeader = 1 << 20  // bytes before the first chunk
	MaxChunk  = 16 << 20 // bytes of a chunk
	maxTime   = 1 << 33  // seconds since the stream began
)

// Chunk is a piece of the stream that can be passed on by itself.
type Chunk struct {
	Data        []byte
	Start       time.Duration // of its first sample, on the stream's clock
	Duration    time.Duration
	Independent bool // it begins with a sample that needs no other
}

// Reader reads one stream. Its times are those of the first video track, or of the first track.
type Reader struct {
	from  io.Reader
	track track
}

type track struct {
	id, scale       uint32
	video           bool
	duration, flags uint32 // of a sample, where a chunk does not say
}

// NewReader makes a reader of a stream.
func NewReader(from io.Reader) *Reader { return &Reader{from: from} }

// errShort is a box that ends before its content.
var errShort = errors.New("a box is too short")

// Header reads the header: what a player needs before the first chunk.
func (r *Reader) Header() ([]byte, error) {
	var all []byte
	for {
		kind, box, err := r.box(MaxHeader - len(all))
		if err != nil {
			return nil, fmt.Errorf("cmaf: read the header: %w", err)
		}
		all = append(all, box...)
		if kind == "moov" {
			if err := r.moov(box[8:]); err != nil {
				return nil, fmt.Errorf("cmaf: read the header: %w", err)
			}
			return all, nil
		}
	}
}

// Next reads a chunk. It is io.EOF where the stream ends between two.
func (r *Reader) Next() (Chunk, error) {
	var c Chunk
	known := false
	for {
		kind, box, err := r.box(MaxChunk - len(c.Data))
		if err == io.EOF && len(c.Data) == 0 {
			return Chunk{}, err
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err == nil && kind == "moof" {
			known, err = true, r.moof(box[8:], &c)
		}
		if err != nil {
			return Chunk{}, fmt.Errorf("cmaf: read a chunk: %w", err)
		}
		switch kind {
		case "styp", "prft", "emsg", "sidx", "moof":
			c.Data = append(c.Data, box...)
		case "mdat":
			if !known {
				return Chunk{}, errors.New("cmaf: read a chunk: media without a moof box")
			}
			c.Data = append(c.Data, box...)
			return c, nil
		}
	}
}

// box reads a box of at most so many bytes.
func (r *Reader) box(most int) (kind string, box []byte, err error) {
	head := make([]byte, 8, 64)
	if _, err := io.ReadFull(r.from, head); err != nil {
		return "", nil, err
	}
	kind = string(head[4:])
	size := int64(binary.BigEndian.Uint32(head))
	if size < 8 || size > int64(most) { // neither 64-bit sizes nor boxes to the end of a file are in a stream's bounds
		return "", nil, fmt.Errorf("a %q box of %d bytes; at most %d fit", kind, size, most)
	}
	// The buffer grows with what has come, not with what was announced.
	rest, err := io.ReadAll(io.LimitReader(r.from, size-8))
	if err == nil && int64(len(rest)) < size-8 {
		err = io.ErrUnexpectedEOF
	}
	return kind, append(head, rest...), err
}

// each calls f for the boxes in a box.
func each(data []byte, f func(kind string, content []byte) error) error {
	for len(data) > 0 {
		if len(data) < 8 {
			return errShort
		}
		size := binary.BigEndian.Uint32(data)
		if size < 8 || int64(size) > int64(len(data)) {
			return errShort
		}
		if err := f(string(data[4:8]), data[8:size]); err != nil {
			return err
		}
		data = data[size:]
	}
	return nil
}

// fields reads numbers from a box, with its version and flags before them.
type fields struct {
	data  []byte
	short bool
}

func (f *fields) skip(n int) {
	if len(f.data) < n {
		f.short, f.data = true, nil
		return
	}
	f.data = f.data[n:]
}

func (f *fields) u32() (n uint32) {
	if len(f.data) >= 4 {
		n = binary.BigEndian.Uint32(f.data)
	}
	f.skip(4)
	return n
}

func (f *fields) u64() uint64 { return uint64(f.u32())<<32 | uint64(f.u32()) }

// optional is a number that the box has if a flag is set.
func (f *fields) optional(flags, flag, otherwise uint32) uint32 {
	if flags&flag == 0 {
		return otherwise
	}
	return f.u32()
}

func (f *fields) err() error {
	if f.short {
		return errShort
	}
	return nil
}

func seconds(n uint64, scale uint32) (time.Duration, error) {
	s := float64(n) / float64(scale)
	if s >= maxTime {
		return 0, fmt.Errorf("a time of %g s", s)
	}
	return time.Duration(s * float64(time.Second)), nil
}
