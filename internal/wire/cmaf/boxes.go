package cmaf

import "errors"

// moov chooses the track by which the stream is timed.
func (r *Reader) moov(data []byte) error {
	var tracks []track
	defaults := map[uint32][2]uint32{}
	err := each(data, func(kind string, content []byte) error {
		switch kind {
		case "trak":
			var t track
			if err := each(content, t.box); err != nil {
				return err
			}
			tracks = append(tracks, t)
		case "mvex":
			return each(content, func(kind string, content []byte) error {
				if kind != "trex" {
					return nil
				}
				f := fields{data: content}
				f.skip(4)
				id := f.u32()
				f.skip(4)
				duration := f.u32()
				f.skip(4)
				defaults[id] = [2]uint32{duration, f.u32()}
				return f.err()
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, t := range tracks {
		if r.track.id == 0 || t.video && !r.track.video {
			r.track = t
		}
	}
	if r.track.id == 0 || r.track.scale == 0 {
		return errors.New("no track with an ID and a time scale")
	}
	r.track.duration, r.track.flags = defaults[r.track.id][0], defaults[r.track.id][1]
	return nil
}

// box reads one of trak, or of mdia in it.
func (t *track) box(kind string, content []byte) error {
	f := fields{data: content}
	switch kind {
	case "mdia":
		return each(content, t.box)
	case "tkhd":
		f.skip(times(content))
		t.id = f.u32()
	case "mdhd":
		f.skip(times(content))
		t.scale = f.u32()
	case "hdlr":
		f.skip(8)
		t.video = f.u32() == 'v'<<24|'i'<<16|'d'<<8|'e'
	}
	return f.err()
}

// times is how many bytes the version, the flags and two times take.
func times(content []byte) int {
	if len(content) > 0 && content[0] == 1 {
		return 4 + 16
	}
	return 4 + 8
}

// moof finds the times of the chunk's fragment of the track.
func (r *Reader) moof(data []byte, c *Chunk) error {
	found := false
	err := each(data, func(kind string, content []byte) error {
		if kind != "traf" || found {
			return nil
		}
		t := traf{duration: r.track.duration, flags: r.track.flags}
		if err := each(content, t.box); err != nil || t.id != r.track.id {
			return err
		}
		found = true
		var err1, err2 error
		c.Start, err1 = seconds(t.start, r.track.scale)
		c.Duration, err2 = seconds(t.length, r.track.scale)
		c.Independent = t.independent
		return errors.Join(err1, err2)
	})
	switch {
	case err != nil:
		return err
	case !found:
		return errors.New("a fragment without the track that the stream is timed by")
	case c.Duration <= 0:
		return errors.New("a fragment without a duration")
	}
	return nil
}

// traf is a track's fragment.
type traf struct {
	id              uint32
	duration, flags uint32 // of a sample, where it does not say
	start, length   uint64
	runs            int
	independent     bool
}

const (
	nonSync    = 1 << 16 // in a sample's flags
	maxSamples = 1 << 20 // of a run
)

func (t *traf) box(kind string, content []byte) error {
	f := fields{data: content}
	version := f.u32()
	flags := version & 0xffffff
	switch kind {
	case "tfhd":
		t.id = f.u32()
		if flags&0x1 != 0 {
			f.skip(8)
		}
		f.optional(flags, 0x2, 0)
		t.duration = f.optional(flags, 0x8, t.duration)
		f.optional(flags, 0x10, 0)
		t.flags = f.optional(flags, 0x20, t.flags)
	case "tfdt":
		if version>>24 == 1 {
			t.start = f.u64()
		} else {
			t.start = uint64(f.u32())
		}
	case "trun":
		return t.run(f, flags)
	default:
		return nil
	}
	return f.err()
}

func (t *traf) run(f fields, flags uint32) error {
	count := f.u32()
	if count > maxSamples {
		return errors.New("a run of too many samples")
	}
	f.optional(flags, 0x1, 0)
	first := f.optional(flags, 0x4, t.flags)
	if flags&0xf00 == 0 {
		t.length += uint64(count) * uint64(t.duration)
	}
	for i := uint32(0); i < count && flags&0xf00 != 0 && !f.short; i++ {
		t.length += uint64(f.optional(flags, 0x100, t.duration))
		f.optional(flags, 0x200, 0)
		own := f.optional(flags, 0x400, first)
		f.optional(flags, 0x800, 0)
		if i == 0 {
			first = own
		}
	}
	if t.runs++; t.runs == 1 && count > 0 {
		t.independent = first&nonSync == 0
	}
	return f.err()
}
