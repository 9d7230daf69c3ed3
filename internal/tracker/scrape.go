package tracker

import (
	"slices"

	"github.com/leeway-video/leeway/internal/wire/signal"
	"github.com/leeway-video/leeway/internal/wire/webtorrent"
)

// scrape answers for the swarms that are at home here, and passes on what concerns others: each home answers for its own.
func (s *torrentSession) scrape(w *torrentWork) {
	r := &w.request
	if r.Own {
		s.mu.Lock()
		for _, m := range s.peers {
			r.Hashes = append(r.Hashes, m.hash)
		}
		s.mu.Unlock()
	}
	var elsewhere map[signal.ID][]webtorrent.ID
	here := r.Hashes[:0]
	for _, h := range r.Hashes {
		if !s.t.allowed(&h) {
			continue
		}
		switch home := s.t.torrentHome(&h); {
		case home == s.t.id && !slices.Contains(here, h):
			here = append(here, h)
		case home != s.t.id && !slices.Contains(elsewhere[home], h):
			if elsewhere == nil {
				elsewhere = map[signal.ID][]webtorrent.ID{}
			}
			elsewhere[home] = append(elsewhere[home], h)
		}
	}
	for home, hashes := range elsewhere {
		for some := range slices.Chunk(hashes, webtorrent.MaxScrape) {
			s.tell(home, &webtorrent.Request{Kind: webtorrent.Scrape, Hashes: some}, false)
		}
	}
	if r.Hashes = here; len(here) > 0 || len(elsewhere) == 0 {
		s.scrapeHere(w)
	}
}

// scrapeHere is a scrape of swarms that are at home here.
func (s *torrentSession) scrapeHere(w *torrentWork) {
	w.files = w.files[:0]
	for i := range w.request.Hashes {
		w.files = append(w.files, s.t.torrents.scrape(&w.request.Hashes[i]))
	}
	s.write(&webtorrent.Reply{Kind: webtorrent.Scraped, Files: w.files})
}
