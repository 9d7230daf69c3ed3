package app

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/leeway-video/leeway/internal/app/origin"
	"github.com/leeway-video/leeway/internal/packaging"
	"github.com/leeway-video/leeway/internal/site"
)

// packager is the key of what is signed here, and its public half.
func (u *upRun) packager() (key *ecdsa.PrivateKey, public string, err error) {
	key, public, _, err = packagerKey(filepath.Join(u.config.Up.DataDir, packagerFile))
	return key, public, err
}

// sign signs the film, and adds the key to the site.
func (u *upRun) sign(ctx context.Context, source *source, config *site.Config) error {
	key, public, err := u.packager()
	if err != nil {
		return fmt.Errorf("up: sign the film: %w", err)
	}
	if err := signFilm(ctx, source.Server, *config, key); err != nil {
		return fmt.Errorf("up: %w", err)
	}
	config.PackagerKeys = []string{public}
	return nil
}

// signFilm has an origin serve the lists of its film, as a packager writes them. Nothing is written: a film that was made here is shared
// by all that show it, and each of them has a key of its own.
func signFilm(ctx context.Context, o *origin.Server, config site.Config, key *ecdsa.PrivateKey) error {
	rules, err := site.New(config)
	if err != nil {
		return fmt.Errorf("sign the film: %w", err)
	}
	lists := map[string][]byte{}
	for below, root := range map[string]*os.Root{"": o.Root, origin.TSBelow: o.TS} {
		if root == nil {
			continue
		}
		if err := signFolder(ctx, packaging.Settings{
			Site: rules, Key: key, Root: root, Path: o.Prefix + below, Workers: runtime.GOMAXPROCS(0), Now: time.Now,
		}, func(file string, list []byte) { lists[below+file+packaging.Suffix] = list }); err != nil {
			return fmt.Errorf("sign the film: %w", err)
		}
	}
	o.Lists = lists
	return nil
}

// signFolder signs all playlists of a folder.
func signFolder(ctx context.Context, s packaging.Settings, signed func(file string, list []byte)) error {
	p, err := packaging.New(s)
	if err != nil {
		return err
	}
	plans, err := p.Plans()
	if err != nil {
		return err
	}
	for _, plan := range plans {
		lists, err := plan.Sign(ctx)
		if err != nil {
			return err
		}
		for _, l := range lists {
			signed(l.File, l.Data)
		}
	}
	return nil
}
