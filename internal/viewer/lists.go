package viewer

import (
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/segment"
)

// Bounds of what is loaded (spec/packaging.md, "What a viewer does").
const (
	mostList  = certificate.MaxTaken   // bytes of one list
	mostLists = 8                      // of so many playlists one is kept
	listEvery = 2 * time.Second        // or half of the duration of a segment, if that is less
	listLeast = 500 * time.Millisecond // but no less than this
	listRest  = 5 * time.Second
	listRests = 10 * time.Minute
	listFirst = 2 * time.Second // so long the first load of a list is waited for
)

// ListFigures count the loads of what packagers have signed, and what came of them.
type ListFigures struct {
	Loaded    int   `json:"loaded"`
	Failed    int   `json:"failed"`    // not there, no list, too long
	Bytes     int64 `json:"bytes"`     // of both
	Completed int   `json:"completed"` // certificates made of a list and of what the origin sent

	Parts       int `json:"parts"`        // certificates of parts that were loaded
	PartsMissed int `json:"parts_missed"` // not there, or of no use
}

// lists are what packagers have signed of the playlists that are played. They are loaded beside the media, one at a time.
type lists struct {
	*shared
	counts func(c *certificate.Certificate) bool // it would verify if its signature is right
	wanted func() bool                           // this viewer has a use for lists
	came   func()

	byURL   map[string]*signed
	order   []string  // of playlists, as their segments were asked for
	running func()    // takes back the load that runs; nil: none does
	until   time.Time // so long seeds are not asked ahead of the player: a first load runs
	figures ListFigures
}

// signed is what is known of the list of one playlist.
type signed struct {
	entries map[segment.Name]*certificate.Certificate
	loaded  bool      // at least once, whatever came of it
	again   time.Time // not before
	misses  int       // loads in a row that did not bring what they were made for, nor anything else that is new
	grew    bool      // the last one named what was not named before
}

// entry is the short certificate of a segment, nil if no list has one that counts.
func (l *lists) entry(s *seg) *certificate.Certificate {
	for _, url := range slices.Backward(l.order) {
		if c := l.byURL[url].entries[s.name]; c != nil && l.counts(c) {
			return c
		}
	}
	return nil
}

// packaged says whether no seed is to be asked for a segment: a list has it, or the player has not asked for it yet and the first
// list of its playlist is on its way.
func (l *lists) packaged(s *seg) bool {
	return l.entry(s) != nil || !s.wanted() && l.running != nil && l.loop.Now().Before(l.until)
}

// refuse drops an entry that does not verify.
func (l *lists) refuse(c *certificate.Certificate) {
	for _, p := range l.byURL {
		if p.entries[c.Name] == c {
			delete(p.entries, c.Name)
		}
	}
}

// asked notes that the player asks for a segment of a playlist. The list is loaded once.
func (l *lists) asked(s *seg) {
	if s.playlist == "" {
		return
	}
	p := l.byURL[s.playlist]
	if p == nil {
		p = &signed{}
		l.byURL[s.playlist] = p
	}
	l.order = append(slices.DeleteFunc(l.order, func(url string) bool { return url == s.playlist }), s.playlist)
	if len(l.order) > mostLists {
		delete(l.byURL, l.order[0])
		l.order = l.order[1:]
	}
	if !p.loaded {
		l.load(p, s)
	}
}

// lacks notes that the origin sent a segment which no list has. The list of its playlist is loaded again.
func (l *lists) lacks(s *seg) {
	if p := l.byURL[s.playlist]; p != nil {
		l.load(p, s)
	}
}

// load loads the list of a playlist, for the sake of a segment.
func (l *lists) load(p *signed, s *seg) {
	if l.running != nil || !l.sharing() || !l.wanted() || l.loop.Now().Before(p.again) {
		return
	}
	if !p.loaded {
		l.until = l.loop.Now().Add(listFirst)
	}
	l.running = l.line.beside(certificate.ListURL(s.playlist), mostList, func(data []byte, err error) {
		l.running, p.loaded = nil, true
		if err == nil {
			l.figures.Bytes += int64(len(data))
			err = l.take(p, data)
		}
		l.rest(p, s, err)
		if err == nil {
			l.came()
		}
		l.changed()
	})
}

// take reads a list. Of two entries for a name the one that was issued later holds: a cache may serve an older list.
func (l *lists) take(p *signed, data []byte) error {
	came, err := certificate.ParseList(data)
	if err != nil {
		return err
	}
	was := p.entries
	p.grew = false
	p.entries = make(map[segment.Name]*certificate.Certificate, len(came))
	for _, c := range came {
		if old := was[c.Name]; old != nil && old.IssuedAt.After(c.IssuedAt) {
			c = old
		} else if old == nil {
			p.grew = true
		}
		p.entries[c.Name] = c
	}
	return nil
}

// rest says when the list may be loaded again.
func (l *lists) rest(p *signed, s *seg, err error) {
	wait := min(listEvery, max(listLeast, s.ref.Duration/2))
	if err != nil {
		l.figures.Failed++
	} else {
		l.figures.Loaded++
	}
	if err == nil && (l.entry(s) != nil || p.grew) {
		p.misses = 0
	} else {
		wait = min(listRest<<min(p.misses, 10), listRests)
		p.misses++
	}
	p.again = l.loop.Now().Add(wait)
}

// stop gives up the load that runs.
func (l *lists) stop() {
	if l.running != nil {
		l.running()
		l.running = nil
	}
}
