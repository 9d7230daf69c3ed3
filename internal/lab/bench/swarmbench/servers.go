package swarmbench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench/demosite"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/seed"
)

// servers is the demo's site, and what it says of itself.
type servers struct {
	*demosite.Site

	opened time.Time
}

func serve(ctx context.Context, host *netlab.Host, o demosite.Options) (*servers, error) {
	o.STUN = true
	site, err := demosite.Open(ctx, host, o)
	if err != nil {
		return nil, err
	}
	return &servers{site, time.Now()}, nil
}

// served is what the servers sent, by their own count.
func (s *servers) served() (Served, error) {
	sums, err := s.Metrics()
	if err != nil {
		return Served{}, err
	}
	requests, err := s.asked()
	if err != nil {
		return Served{}, err
	}
	return Served{
		Requests:        requests,
		OriginToViewers: sums(`leeway_origin_sent_bytes_total`, `client="viewer"`),
		OriginToSeeds:   sums(`leeway_origin_sent_bytes_total`, `client="seed"`),
		Seed:            sums(`leeway_seed_sent_bytes_total`),
		Signaling:       sums(`leeway_tracker_message_bytes_total`),
		LiveLag:         within(sums, `leeway_seed_live_certificate_seconds`, 0.95),
		PartLag:         within(sums, `leeway_seed_part_certificate_seconds`, 0.99),
	}, nil
}

// within is the least bound of a seed's histogram with so much of it below, and the largest where there is none: a result has no infinite
// figures. 0: it is empty.
func within(sums func(name string, labels ...string) int64, histogram string, share float64) float64 {
	all := float64(sums(histogram + "_count"))
	if all == 0 {
		return 0
	}
	defs := seed.Metrics()
	def := defs[slices.IndexFunc(defs, func(d *metric.Def) bool { return d.Name == histogram })]
	for _, bound := range def.Buckets {
		if float64(sums(histogram+"_bucket", fmt.Sprintf("le=\"%g\"", bound))) >= share*all {
			return bound
		}
	}
	return def.Buckets[len(def.Buckets)-1]
}
