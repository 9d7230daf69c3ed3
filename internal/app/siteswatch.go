package app

import (
	"log/slog"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/site"
)

// sitesEvery is how often the file that sites come from is looked at.
const sitesEvery = 10 * time.Second

// sitesWatch notices that a site was switched off or on in its file. Nothing else in the file takes effect without a restart.
type sitesWatch struct {
	path string
	read func() ([]site.Config, error)
	tell func(site string, off bool)
	log  *slog.Logger
	was  map[string]bool
	seen stamp
}

// openWatch begins with what the process started with.
func openWatch(path string, sites []site.Config, read func() ([]site.Config, error), tell func(string, bool), log *slog.Logger) *sitesWatch {
	w := &sitesWatch{path: path, read: read, tell: tell, log: log, was: map[string]bool{}}
	for _, c := range sites {
		w.was[c.Name] = c.Off
	}
	w.seen, _ = stampOf(path) // a file that cannot be looked at now is read when it can
	return w
}

// look tells what has changed. A file that cannot be read, or is wrong, changes nothing.
func (w *sitesWatch) look() {
	now, err := stampOf(w.path)
	var sites []site.Config
	if err == nil && now != w.seen {
		if sites, err = w.read(); err == nil {
			w.seen = now
		}
	}
	if err != nil {
		w.log.Warn("the configuration cannot be read again; sites stay as they are", "file", w.path, "error", err)
		return
	}
	for _, c := range sites {
		if was, known := w.was[c.Name]; known && was != c.Off {
			w.was[c.Name] = c.Off
			w.log.Warn("peer delivery switched by configuration", "site", c.Name, "off", c.Off)
			w.tell(c.Name, c.Off)
		}
	}
}

// watchSites follows the file that sites come from until the services stop.
func (s *services) watchSites(path string, sites []site.Config, read func() ([]site.Config, error)) {
	if path == "" {
		return
	}
	w := openWatch(path, sites, read, func(site string, off bool) {
		for _, one := range s.switchers {
			one.Configure(site, off)
		}
	}, s.log)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(sitesEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.look()
			case <-done:
				return
			}
		}
	})
	s.stops = append(s.stops, func() {
		close(done)
		wg.Wait()
	})
}

// sitesFile is the configuration's file, and how its sites are read again.
func (r *run) sitesFile() (path string, read func() ([]site.Config, error)) {
	path = r.file()
	return path, func() ([]site.Config, error) {
		config := defaults(r.env.Getenv)
		if _, err := loadFile(path, config, r.env); err != nil {
			return nil, err
		}
		if err := r.env.valid(config); err != nil {
			return nil, err
		}
		return config.Sites, nil
	}
}
