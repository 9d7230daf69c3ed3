package app

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/jwtauth"
	"github.com/leeway-video/leeway/internal/site"
)

const (
	// keysEvery is how often a file of token keys is looked at, when a client shows a token or a session is checked.
	keysEvery = 10 * time.Second
	// keysAgain is how soon, when a token names a key that is not there: it may have been added just now.
	keysAgain = time.Second
)

// tokenKeys are the keys of token-only sites, in files that other programs change. It satisfies tracker.Tokens.
type tokenKeys struct {
	log   *slog.Logger
	now   func() time.Time
	files map[string]*keyFile // by the site's name
}

// keyFile is the file of one site.
type keyFile struct {
	path string
	keys atomic.Pointer[access.Keys]

	looking sync.Mutex // held while the file is looked at
	stamp   stamp      // guarded by looking: of the file that keys came from
	looked  time.Time  // guarded by looking
}

// stamp tells one state of a file from another.
type stamp struct {
	at   time.Time
	size int64
}

func stampOf(path string) (stamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}, err
	}
	return stamp{info.ModTime(), info.Size()}, nil
}

// openTokenKeys reads the files of all token-only sites, so that what is wrong with them is said at the start.
func openTokenKeys(sites []*site.Site, log *slog.Logger) (*tokenKeys, error) {
	t := &tokenKeys{log: log, now: time.Now, files: map[string]*keyFile{}}
	for _, s := range sites {
		c := s.Config()
		if c.Access != site.AccessToken {
			continue
		}
		if c.TokenKeys == "" {
			return nil, cmdline.Usage(fmt.Errorf("site %q: access is token, and token_keys names no file of keys to check tokens with (leeway token keygen makes one)", c.Name))
		}
		f := &keyFile{path: c.TokenKeys}
		if err := f.read(); err != nil {
			return nil, cmdline.Usage(fmt.Errorf("site %q: token_keys: %w", c.Name, err))
		}
		f.looked = t.now()
		t.files[c.Name] = f
	}
	return t, nil
}

// read takes the file's keys over if it is another one than the last. Under looking.
func (f *keyFile) read() error {
	is, err := stampOf(f.path)
	if err != nil {
		return err
	}
	if is == f.stamp {
		return nil
	}
	if is.size > access.MaxKeyFile {
		return fmt.Errorf("%s has more than %d bytes", f.path, access.MaxKeyFile)
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	keys, err := access.ParseKeys(text)
	if err != nil {
		return fmt.Errorf("%s %w", f.path, err)
	}
	f.keys.Store(&keys)
	f.stamp = is
	return nil
}

// of is the keys of a site. A file that cannot be read, or is wrong, changes nothing. A caller that misses no key does not wait while
// another one reads.
func (t *tokenKeys) of(site string, every time.Duration) access.Keys {
	f := t.files[site]
	if f == nil {
		return nil
	}
	if every == keysAgain {
		f.looking.Lock() // the key may be in what is being read
	} else if !f.looking.TryLock() {
		return *f.keys.Load()
	}
	defer f.looking.Unlock()
	if now := t.now(); now.Sub(f.looked) >= every {
		f.looked = now
		before := f.stamp
		if err := f.read(); err != nil {
			t.log.Warn("token keys cannot be read again; those in use stay", "site", site, "error", err)
		} else if f.stamp != before {
			t.log.Info("token keys read again", "site", site, "keys", len(*f.keys.Load()))
		}
	}
	return *f.keys.Load()
}

// Check implements tracker.Tokens.
func (t *tokenKeys) Check(site, token string, now time.Time) (*access.Grant, error) {
	grant, err := jwtauth.Check(token, site, t.of(site, keysEvery), now)
	var refused *access.TokenError
	if errors.As(err, &refused) && refused.Reason == access.UnknownKey {
		return jwtauth.Check(token, site, t.of(site, keysAgain), now)
	}
	return grant, err
}

// Holds implements tracker.Tokens.
func (t *tokenKeys) Holds(site, keyID string) bool {
	_, ok := t.of(site, keysEvery).Find(keyID)
	return ok
}

// addKey puts a key into a file of keys, which is made when it is not there: whole under another name, then renamed, so that
// a reader sees the old file or the new one.
func addKey(path string, key access.Key) error {
	var keys access.Keys
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		if keys, err = access.ParseKeys(text); err != nil {
			return fmt.Errorf("%s %w", path, err)
		}
		if _, twice := keys.Find(key.ID); twice {
			return fmt.Errorf("%s has a key named %s already (choose another --id)", path, key.ID)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return replaceFile(path, keySet(append(keys, key.Checking())))
}
