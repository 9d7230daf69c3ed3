package viewer

import (
	"fmt"
	"testing"
	"time"
)

// pipes is a net of pipes, each of which carries so much from one place to another.
type pipes struct {
	to   []int
	room []int64 // a pipe and the way back through it are two in a row
	at   [][]int // pipes that begin at a place
}

func (p *pipes) place() int {
	p.at = append(p.at, nil)
	return len(p.at) - 1
}

func (p *pipes) join(from, to int, room int64) {
	p.at[from] = append(p.at[from], len(p.to))
	p.at[to] = append(p.at[to], len(p.to)+1)
	p.to, p.room = append(p.to, to, from), append(p.room, room, 0)
}

// most is the most that flows from one place to another, by Dinic's algorithm. What flows leaves less room.
func (p *pipes) most(from, to int) (all int64) {
	for {
		level := p.levels(from)
		if level[to] < 0 {
			return all
		}
		tried := make([]int, len(p.at))
		for {
			n := p.push(from, to, 1<<62, level, tried)
			if n == 0 {
				break
			}
			all += n
		}
	}
}

// levels says how many pipes with room away from a place each other one is; -1: none leads there.
func (p *pipes) levels(from int) []int {
	level := make([]int, len(p.at))
	for i := range level {
		level[i] = -1
	}
	level[from] = 0
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		for _, e := range p.at[queue[0]] {
			if next := p.to[e]; p.room[e] > 0 && level[next] < 0 {
				level[next] = level[queue[0]] + 1
				queue = append(queue, next)
			}
		}
	}
	return level
}

// push has something flow along one way that leads a level on with each pipe.
func (p *pipes) push(from, to int, n int64, level, tried []int) int64 {
	if from == to {
		return n
	}
	for ; tried[from] < len(p.at[from]); tried[from]++ {
		e := p.at[from][tried[from]]
		if p.room[e] == 0 || level[p.to[e]] != level[from]+1 {
			continue
		}
		if pushed := p.push(p.to[e], to, min(n, p.room[e]), level, tried); pushed > 0 {
			p.room[e], p.room[e^1] = p.room[e]-pushed, p.room[e^1]+pushed
			return pushed
		}
	}
	return 0
}

// slot is how finely the bound looks at time.
const slot = 500 * time.Millisecond

// demand is one segment that a viewer of a broadcast was given.
type demand struct {
	url         string
	size        int64
	first, last int // slots in which it may come: from its publication, or the viewer's first segment, until it is played
}

// present is one viewer of a broadcast, as the bound sees it.
type present struct {
	*actor
	demands     []demand // but for the first one
	plays       map[string]bool
	first, last int // slots in which it may send
}

// mostFromViewers is the most that any schedule could have had the viewers of a broadcast have from each other: the same viewers, in the
// same renditions, no later than they play. Nothing is asked of a viewer but that it sends what it plays as well, by its uplink, while it is
// there. It may send a segment before it could have it. Each segment goes to so many viewers another way: to one if the operator sends it
// once, to two if a seed fetches it first, and what the seed fetches is taken off. A viewer's first segment is not shared, since it has no
// link before it begins.
func (s *scene) mostFromViewers(copies int64) int64 {
	end := int(s.w.now.Sub(worldBegin)/slot) + 1
	var all []*present
	for _, v := range s.viewers {
		all = append(all, s.present(v))
	}
	p := &pipes{}
	source, sink := p.place(), p.place()
	segments, wanted := map[string]int{}, map[string]int64{}
	for _, v := range all {
		for url := range v.plays {
			wanted[url]++
		}
	}
	for url, viewers := range wanted {
		segments[url] = p.place()
		p.join(segments[url], sink, max(0, viewers-copies)*int64(len(s.film.files[path(url)])))
	}
	ups, downs := make([][]int, len(all)), make([][]int, len(all))
	carries := func(rate float64) int64 { return int64(rate * slot.Seconds()) }
	for i, v := range all {
		ups[i], downs[i] = make([]int, end), make([]int, end)
		for t := range end {
			ups[i][t], downs[i][t] = p.place(), p.place()
			if t >= v.first && t <= v.last {
				p.join(source, ups[i][t], carries(v.node.up.Rate))
			}
		}
	}
	for i, v := range all {
		lines := make([]int, end)
		for t := range end {
			lines[t] = p.place()
			p.join(downs[i][t], lines[t], carries(v.node.down.Rate))
		}
		senders := map[[2]int]bool{} // slot, viewer
		for _, d := range v.demands {
			want := p.place()
			p.join(want, segments[d.url], d.size)
			for t := d.first; t <= min(d.last, end-1); t++ {
				p.join(lines[t], want, d.size)
				for j, w := range all {
					if j != i && w.plays[d.url] && !senders[[2]int{t, j}] {
						senders[[2]int{t, j}] = true
						p.join(ups[j][t], downs[i][t], 1<<62)
					}
				}
			}
		}
	}
	return p.most(source, sink)
}

// present makes a viewer's part of the bound.
func (s *scene) present(a *actor) *present {
	live := s.film.live
	at := func(t time.Time) int { return int(t.Sub(worldBegin) / slot) }
	behind := time.Duration(a.now().LatencyMs) * time.Millisecond
	v := &present{actor: a, plays: map[string]bool{}, last: -1}
	for n, r := range a.results {
		v.plays[r.URL] = true
		var level, seq int
		if _, err := fmt.Sscanf(path(r.URL), "/media/film/%d/seg-%d.ts", &level, &seq); err != nil || n == 0 {
			continue
		}
		published := live.published(seq)
		played := later(published.Add(behind-live.duration), a.came[n])
		v.demands = append(v.demands, demand{r.URL, int64(r.Len()), at(later(published, a.came[0])), at(played)})
	}
	if len(a.came) > 0 {
		v.first, v.last = at(a.came[0]), at(a.came[len(a.came)-1].Add(2*live.duration))
	}
	return v
}

func TestTheMostThatPipesCarry(t *testing.T) {
	p := &pipes{}
	for range 6 {
		p.place()
	}
	// The example of Cormen et al., figure 26.1: 23.
	for _, e := range [][3]int{{0, 1, 16}, {0, 2, 13}, {1, 3, 12}, {2, 1, 4}, {2, 4, 14}, {3, 2, 9}, {3, 5, 20}, {4, 3, 7}, {4, 5, 4}} {
		p.join(e[0], e[1], int64(e[2]))
	}
	if n := p.most(0, 5); n != 23 {
		t.Errorf("%d", n)
	}
}

// TestNoScheduleHasMoreFromViewersThanTheirLinesCarry: three viewers of one rendition come together. What they have from each other is
// within the bound, which is two of three copies where their uplinks allow it, and what the uplinks carry where they do not.
func TestNoScheduleHasMoreFromViewersThanTheirLinesCarry(t *testing.T) {
	for name, up := range map[string]float64{"wide": 12.5e6, "thin": 5_000} {
		s := newScene(t, onAir(40, 100_000))
		for range 3 {
			s.viewer(access{up: up, down: 12.5e6}, nil)
		}
		s.w.run(90 * time.Second)
		s.check()
		a := s.account()
		copies := int64(0)
		for _, data := range s.film.files {
			copies += int64(len(data))
		}
		t.Logf("%s: of %d bytes %d from viewers, %d at most, %d at most saved with a seed", name, a.all, a.peer, a.most, a.mostSaved)
		if a.peer > a.most || a.most > 2*a.all/3 || a.mostSaved > a.all/3 || a.mostSaved > a.most {
			t.Errorf("%s: %+v", name, a)
		}
		if name == "wide" && a.most < 2*a.all/3-3*100_000 {
			t.Errorf("%d of %d bytes: two of three copies are expected", a.most, a.all)
		}
		if sent := int64(3 * up * 90); name == "thin" && (a.most > sent || a.most < sent/2) {
			t.Errorf("%d bytes, and the uplinks carry %d", a.most, sent)
		}
	}
}
