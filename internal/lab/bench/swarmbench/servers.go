package swarmbench

import (
	"context"

	"github.com/leeway-video/leeway/internal/lab/bench/demosite"
	"github.com/leeway-video/leeway/internal/lab/netlab"
)

// servers is the demo's site, and what it says of itself.
type servers struct{ *demosite.Site }

func serve(ctx context.Context, host *netlab.Host, film string, settings ...string) (*servers, error) {
	site, err := demosite.Open(ctx, host, demosite.Options{STUN: true, Film: film, Settings: settings})
	if err != nil {
		return nil, err
	}
	return &servers{site}, nil
}

// served is what the servers sent, by their own count.
func (s *servers) served() (Served, error) {
	sums, err := s.Metrics()
	if err != nil {
		return Served{}, err
	}
	return Served{
		OriginToViewers: sums(`leeway_origin_sent_bytes_total`, `client="viewer"`),
		OriginToSeeds:   sums(`leeway_origin_sent_bytes_total`, `client="seed"`),
		Seed:            sums(`leeway_seed_sent_bytes_total`),
		Signaling:       sums(`leeway_tracker_message_bytes_total`),
	}, nil
}
