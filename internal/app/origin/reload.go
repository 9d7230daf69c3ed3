package origin

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/wire/playlist"
)

const (
	// maxReloads bounds the requests that wait for a playlist or a part to come, and maxReloadsOne those of an address.
	maxReloads    = 1024
	maxReloadsOne = maxReloads / 4
	// reloadTargets is how many target durations a request waits (RFC 8216bis, section 6.2.5.2).
	reloadTargets = 3
)

// reloads has requests of players wait for what low-latency playlists do not list yet. The zero value is ready.
type reloads struct {
	mu      sync.Mutex
	lists   map[string]*nextPart // guarded by mu: by file
	hints   map[string]string    // guarded by mu: playlist of the file that is hinted at
	news    chan struct{}        // guarded by mu: closed when a playlist has come
	grows   map[string]*growth   // guarded by mu: by series
	waiting access.Shares        // guarded by mu
}

// nextPart is what a playlist lists next.
type nextPart struct {
	sequence int64
	part     int
	hint     string // its file; empty: the playlist does not say
	target   time.Duration
}

// listed takes down what a playlist lists that was published.
func (o *Server) listed(file string) error {
	text, err := o.Root.ReadFile(file)
	if err != nil {
		return err
	}
	_, media, err := playlist.Read(text)
	if err != nil || media == nil || media.LowLatency == nil || !media.LowLatency.Blocks {
		return err
	}
	o.reloads.listed(file, media)
	return nil
}

func (r *reloads) listed(file string, media *playlist.Media) {
	next := &nextPart{target: media.Target}
	next.sequence, next.part = media.Next()
	if hint := media.LowLatency.Hint; hint != nil {
		next.hint = path.Join(path.Dir(file), hint.URI)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lists == nil {
		r.lists, r.hints = map[string]*nextPart{}, map[string]string{}
		r.waiting = access.Shares{Most: maxReloads, One: maxReloadsOne}
	}
	if old := r.lists[file]; old != nil {
		delete(r.hints, old.hint)
	}
	r.lists[file] = next
	if next.hint != "" {
		r.hints[next.hint] = file
	}
	r.tell()
}

// came takes down that a file was published.
func (r *reloads) came(file string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	grew := r.grew(file)
	if r.hints[file] == "" && !grew {
		return
	}
	delete(r.hints, file)
	r.tell()
}

// tell wakes what waits. The caller holds mu.
func (r *reloads) tell() {
	if r.news != nil {
		close(r.news)
		r.news = nil
	}
}

// hold waits until a request of a client can be answered. It returns the status of a request that cannot.
func (r *reloads) hold(ctx context.Context, client netip.Addr, file string, query url.Values) int {
	there, of, status := r.condition(file, query)
	if there == nil {
		return status
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	late := time.NewTimer(reloadTargets * r.lists[of].target)
	defer late.Stop()
	if !r.wait(ctx, client, late.C, func() bool { return there(r.lists[of]) }) {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

// wait waits until something holds, and looks with all that is published. It says whether it does: not if the request ends, it is late,
// or too many requests wait. The caller holds mu.
func (r *reloads) wait(ctx context.Context, client netip.Addr, late <-chan time.Time, holds func() bool) bool {
	if holds() {
		return true
	}
	network := access.Network(client)
	if !r.waiting.Take(network, 1) {
		return false
	}
	defer r.waiting.Give(network, 1)
	for !holds() {
		if r.news == nil {
			r.news = make(chan struct{})
		}
		news := r.news
		r.mu.Unlock()
		ended := false
		select {
		case <-news:
		case <-late:
			ended = true
		case <-ctx.Done():
			ended = true
		}
		r.mu.Lock()
		if ended {
			return false
		}
	}
	return true
}

// condition is what a request waits for of a playlist; nil: it is answered at once, with the status. hold calls there with mu held.
func (r *reloads) condition(file string, query url.Values) (there func(*nextPart) bool, of string, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of, is := r.hints[file]; is {
		return func(*nextPart) bool { return r.hints[file] == "" }, of, http.StatusOK
	}
	next := r.lists[file]
	if next == nil || !query.Has("_HLS_msn") && !query.Has("_HLS_part") {
		return nil, "", http.StatusOK
	}
	sequence, err := strconv.ParseInt(query.Get("_HLS_msn"), 10, 64)
	part, whole := 0, !query.Has("_HLS_part")
	if err == nil && !whole {
		part, err = strconv.Atoi(query.Get("_HLS_part"))
	}
	// A player asks for what comes next. What comes after the next segment is a fault of it.
	if err != nil || sequence < 0 || part < 0 || sequence > next.sequence+1 {
		return nil, "", http.StatusBadRequest
	}
	return func(next *nextPart) bool {
		return next.sequence > sequence || !whole && next.sequence == sequence && next.part > part
	}, file, http.StatusOK
}
