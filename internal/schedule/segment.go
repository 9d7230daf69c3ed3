package schedule

import "slices"

// fillUs of film are in hand before a thin line's segments wait for peers that are no quicker than the origin.
const fillUs = 10_000_000

// UrgentWindow is how long before the playhead gets to a segment its origin must run, in µs.
func (s *Segment) UrgentWindow(permille int64) int64 {
	full := s.DurationUs * permille / 1000
	if s.OriginUs < 0 {
		return full
	}
	return min(full, s.DurationUs/4+3*s.OriginUs)
}

// turnUs is when a segment becomes urgent: when its window begins; or earlier, where it is waited for longer than it plays. A
// player asks for one after the other, and that time is the buffer's. The last duration before the deadline is the window of a
// segment that the origin would now just bring in the time that it plays; a duration and a quarter are waited at most.
func (s *Segment) turnUs(permille int64) int64 {
	inTime := s.AskedUs + s.DurationUs - max(0, s.OriginUs)
	return min(s.DeadlineUs-s.UrgentWindow(permille), max(inTime, s.DeadlineUs-s.DurationUs), s.AskedUs+s.DurationUs*5/4)
}

// thin says whether a buffer is filled over a line that is thin for what is played: so much is in hand as its segment is asked for.
func (s *Segment) thin(handUs int64) bool { return handUs < fillUs && s.OriginUs >= s.DurationUs/2 }

func (s *Segment) asked() bool { return s.AskedUs >= 0 }

func (s *Segment) complete() bool { return s.Pieces > 0 && len(s.Have) >= s.Pieces }

// listed says whether a list of the packager spares the question to a seed. What the origin does not send cannot be completed by a
// list.
func (s *Segment) listed() bool { return s.Packaged && s.Origin != OriginFailed }

// open lists the pieces that are not verified.
func (s *Segment) open() []int {
	var out []int
	for n := range s.Pieces {
		if _, have := slices.BinarySearch(s.Have, n); !have {
			out = append(out, n)
		}
	}
	return out
}
