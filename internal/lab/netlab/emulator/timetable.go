package emulator

import "time"

// timetable orders the links by when they have something to do: a binary heap in which each link's place is known.
type timetable struct {
	heap  []int // link numbers
	place []int // link number → index in heap, −1 when it has nothing to do
	at    []time.Duration
}

func newTimetable(n int) timetable {
	t := timetable{place: make([]int, n), at: make([]time.Duration, n)}
	for i := range t.place {
		t.place[i] = -1
	}
	return t
}

func (t *timetable) first() (link int, at time.Duration, ok bool) {
	if len(t.heap) == 0 {
		return 0, 0, false
	}
	return t.heap[0], t.at[t.heap[0]], true
}

// set says when a link has something to do, or that it has not.
func (t *timetable) set(link int, at time.Duration, ok bool) {
	i := t.place[link]
	switch {
	case !ok && i < 0:
		return
	case !ok:
		last := len(t.heap) - 1
		t.swap(i, last)
		t.heap = t.heap[:last]
		t.place[link] = -1
		if i == last {
			return
		}
		link = t.heap[i]
	case i < 0:
		i = len(t.heap)
		t.heap = append(t.heap, link)
		t.place[link] = i
		t.at[link] = at
	default:
		t.at[link] = at
	}
	t.up(i)
	t.down(t.place[link])
}

// before breaks ties by number, so that a run depends on nothing but its input.
func (t *timetable) before(i, j int) bool {
	a, b := t.heap[i], t.heap[j]
	return t.at[a] < t.at[b] || t.at[a] == t.at[b] && a < b
}

func (t *timetable) swap(i, j int) {
	t.heap[i], t.heap[j] = t.heap[j], t.heap[i]
	t.place[t.heap[i]], t.place[t.heap[j]] = i, j
}

func (t *timetable) up(i int) {
	for i > 0 && t.before(i, (i-1)/2) {
		t.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (t *timetable) down(i int) {
	for {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(t.heap) && t.before(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		t.swap(i, least)
		i = least
	}
}
