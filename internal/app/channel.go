package app

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/app/film"
	"github.com/leeway-video/leeway/internal/app/live"
	"github.com/leeway-video/leeway/internal/app/origin"
	"github.com/leeway-video/leeway/internal/ingest"
	"github.com/leeway-video/leeway/internal/packaging"
	"github.com/leeway-video/leeway/internal/site"
)

// packagerFile is the file of the key with which an up signs its own stream.
const packagerFile = "packager.key"

// startWait is how long a source may take to its first playlist.
const startWait = time.Minute

// channel is a live stream that is made here: a source pushes its files, and a receiver signs and publishes them in the folder of an
// origin.
type channel struct {
	picture  PictureConfig
	replayed string // folder of what is replayed
	origin   *origin.Server
	site     site.Config
	key      *ecdsa.PrivateKey
	log      *slog.Logger
}

// start runs the channel until stop is called, and returns when it can be watched. What ends it sooner is told to the servers.
func (c *channel) start(ctx context.Context, group *servers) (stop func(), err error) {
	rules, err := site.New(c.site)
	if err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	source, err := c.source()
	if err != nil {
		return nil, err
	}
	packager, err := packaging.New(packaging.Settings{Site: rules, Key: c.key, Root: c.origin.Root, Path: c.origin.Prefix, Parts: true, Workers: 1, Now: time.Now})
	if err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	l, err := listenTCP(ctx, "live", "127.0.0.1:0", false)
	if err != nil {
		return nil, err
	}
	playable := make(chan struct{})
	group.serve("live", l, c.noting(ingest.New(packager, c.published), sync.OnceFunc(func() { close(playable) })))
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	transport := &http.Transport{}
	ended := make(chan struct{})
	var failed error // once ended is closed
	go func() {
		defer close(ended)
		if failed = source(running, live.Target{Base: "http://" + l.Addr().String() + "/", Client: &http.Client{Transport: transport}}); failed != nil {
			group.fail(failed)
		}
	}()
	stop = func() {
		cancel()
		<-ended
		transport.CloseIdleConnections()
	}
	late := time.NewTimer(startWait)
	defer late.Stop()
	select {
	case <-playable:
		return stop, nil
	case <-ended:
		err = failed
	case <-late.C:
		err = fmt.Errorf("live: no playlist within %v", startWait)
	case <-ctx.Done():
		err = ctx.Err()
	}
	stop()
	return nil, err
}

// source is what pushes the stream until its context ends.
func (c *channel) source() (func(context.Context, live.Target) error, error) {
	window := c.picture.Window
	window = cmp.Or(window, liveWindow)
	if c.picture.Live {
		recipe := film.DefaultRecipe()
		clock := live.Clock{Segment: time.Duration(c.picture.seconds()) * time.Second, Window: window, FPS: recipe.FPS}
		if c.picture.LowLatency {
			clock.Part = cmp.Or(c.picture.Part, livePart)
		}
		for _, r := range recipe.Renditions {
			clock.Renditions = append(clock.Renditions, live.Rendition(r))
		}
		return clock.Run, nil
	}
	replay, err := live.OpenReplay(os.DirFS(c.replayed))
	if err != nil {
		return nil, err
	}
	replay.Window, replay.Late = window, c.origin.Late
	return replay.Run, nil
}

// published hears of each playlist that was signed, and of each that could not be.
func (c *channel) published(file string, plan *packaging.Plan, err error) {
	if err != nil {
		c.log.Warn("live: a playlist was published without its digests", "file", file, "error", err)
	}
}

// noting has the origin take down what is published, and says when the stream can be played.
func (c *channel) noting(h http.Handler, playable func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		file := path.Clean(r.URL.Path)[1:]
		if r.Method != http.MethodPut {
			return
		}
		if file == live.MasterName {
			playable()
		} else if err := c.origin.Published(file); err != nil {
			c.log.Warn("live: what was published cannot be read again", "file", file, "error", err)
		}
	})
}
