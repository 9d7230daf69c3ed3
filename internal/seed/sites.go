package seed

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/site"
)

const (
	originConns = 16 // concurrent requests to one site's origin
	// maxFetching is how many of them are for segments of one manifest: where those hang, other titles have the others, and playlists.
	maxFetching = originConns / 2
	// maxReading is how many playlists and lists of a site are in memory as bytes: they are fetched sooner than they are parsed.
	maxReading = 8
	// maxSlow is how many of these places what timed out when it was last loaded may have: it has its place until it times out again.
	maxSlow = maxReading / 2
	// maxGrowing is how much of segments that are being made is in memory, bytes.
	maxGrowing = 2 * maxFollowed * parts.MaxPart
)

// siteState is a site with its budget and the bound on its origin's load.
type siteState struct {
	rules    *site.Site
	origin   Origin
	name     string
	scope    *scope
	conns    chan struct{}
	reading  chan struct{}
	slow     chan struct{}
	followed *streamPlaces
	growing  atomic.Int64 // bytes of segments that are being made
	sink     metric.Sink
	// packagers are the keys of the site's packagers; nil: it has none, and its playlists have no lists.
	packagers atomic.Pointer[certificate.KeySet]
}

// certifiedBy replaces the keys of packagers.
func (st *siteState) certifiedBy(keys []certificate.VerifyKey) error {
	if len(keys) == 0 {
		st.packagers.Store(nil)
		return nil
	}
	set, err := certificate.NewKeySet(keys...)
	if err == nil {
		st.packagers.Store(set)
	}
	return err
}

func newSiteState(c Site, sink metric.Sink) *siteState {
	name := c.Site.Name()
	return &siteState{
		rules: c.Site, origin: c.Origin, name: name, scope: newScope("site", c.Rate, c.BytesDaily), conns: make(chan struct{}, originConns),
		reading: make(chan struct{}, maxReading), slow: make(chan struct{}, maxSlow), followed: newStreamPlaces(maxFollowed), sink: sink,
	}
}

// fetch asks the origin, counts, and bounds how much is asked at a time.
func (st *siteState) fetch(ctx context.Context, f Fetch) (*Fetched, error) {
	select {
	case st.conns <- struct{}{}:
	case <-ctx.Done():
		return nil, &FetchError{Outcome: OutcomeTimeout, Path: f.Path, Cause: ctx.Err()}
	}
	defer func() { <-st.conns }()
	return st.keep(ctx, f)
}

// keep asks the origin, beside the bound, for what it may keep waiting, and counts.
func (st *siteState) keep(ctx context.Context, f Fetch) (*Fetched, error) {
	got, err := st.origin.Get(ctx, f)
	if err == nil {
		st.sink.Add(mOriginBytes, float64(len(got.Data)), st.name)
	}
	st.asked(ctx, err)
	return got, err
}

// grows makes room for more of the segments that are being made; false: there is none.
func (st *siteState) grows(n int) bool {
	if st.growing.Add(int64(n)) <= maxGrowing {
		return true
	}
	st.growing.Add(-int64(n))
	return false
}

// flow is keep for what is taken as it comes.
func (st *siteState) flow(ctx context.Context, f Fetch, take func([]byte) error) (*Fetched, error) {
	var enough error
	got, err := st.origin.Flow(ctx, f, func(b []byte) error {
		st.sink.Add(mOriginBytes, float64(len(b)), st.name)
		enough = take(b)
		return enough
	})
	failed := err
	if enough != nil {
		failed = nil
	}
	st.asked(ctx, failed)
	return got, err
}

// asked counts a request by its outcome. That the answer is not wanted any more is no failure of the origin: an alert is made of those.
func (st *siteState) asked(ctx context.Context, err error) {
	outcome := OutcomeOK
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		outcome = outcomeOf(err)
	}
	st.sink.Add(mOriginRequests, 1, st.name, string(outcome))
}

func outcomeOf(err error) Outcome {
	var f *FetchError
	if errors.As(err, &f) {
		return f.Outcome
	}
	return OutcomeNetwork
}
