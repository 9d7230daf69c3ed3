package app

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/sleep"
)

// sitesEvery is how often the file that sites come from is looked at.
const sitesEvery = 10 * time.Second

// sitesWatch notices that a site was switched off or on in its file, and that it has other packagers' keys. Nothing else in the file
// takes effect without a restart.
type sitesWatch struct {
	path string
	read func() ([]site.Config, error)
	tell siteChanges
	log  *slog.Logger
	was  map[string]site.Config
	seen stamp
}

// siteChanges hear what is another than before.
type siteChanges struct {
	off       func(site string, off bool)
	packagers func(site string, keys []certificate.VerifyKey)
}

// openWatch begins with what the process started with. The first look reads the file in any case: it may have changed while the
// process waited for its bus.
func openWatch(path string, sites []site.Config, read func() ([]site.Config, error), tell siteChanges, log *slog.Logger) *sitesWatch {
	w := &sitesWatch{path: path, read: read, tell: tell, log: log, was: map[string]site.Config{}}
	for _, c := range sites {
		w.was[c.Name] = c
	}
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
		was, known := w.was[c.Name]
		if !known {
			continue
		}
		w.was[c.Name] = c
		if was.Off != c.Off {
			w.log.Warn("peer delivery switched by configuration", "site", c.Name, "off", c.Off)
			w.tell.off(c.Name, c.Off)
		}
		if rules, err := site.New(c); err == nil && !slices.Equal(was.PackagerKeys, c.PackagerKeys) {
			w.log.Info("keys of packagers read again", "site", c.Name, "keys", len(c.PackagerKeys))
			w.tell.packagers(c.Name, rules.Packagers())
		}
	}
}

// watchSites follows the file that sites come from until the services stop.
func (s *services) watchSites(path string, sites []site.Config, read func() ([]site.Config, error)) {
	if path == "" {
		return
	}
	w := openWatch(path, sites, read, siteChanges{
		off: func(site string, off bool) {
			for _, one := range s.switchers {
				one.Configure(site, off)
			}
		},
		packagers: func(site string, keys []certificate.VerifyKey) {
			for _, one := range s.switchers {
				one.Packagers(site, keys)
			}
		},
	}, s.log)
	s.stops = append(s.stops, runUntilStopped(func(ctx context.Context) {
		for sleep.For(ctx, sitesEvery) {
			w.look()
		}
	}))
}

// sitesFile is the configuration's file, and how its sites are read again: with the flags and the environment that the service has
// started with, without which what is beside the sites may be wrong.
func (r *run) sitesFile(flags any) (path string, read func() ([]site.Config, error)) {
	path = r.file()
	return path, func() ([]site.Config, error) {
		again := *r
		config, _, err := again.inForce(flags)
		if err == nil {
			err = again.valid(config)
		}
		if err != nil {
			return nil, err
		}
		return config.Sites, nil
	}
}
