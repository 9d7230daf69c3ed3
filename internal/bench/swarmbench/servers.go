package swarmbench

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/leeway-video/leeway/internal/bench/demosite"
	"github.com/leeway-video/leeway/internal/netlab"
)

// servers is the demo's site, and what it says of itself.
type servers struct{ *demosite.Site }

func serve(ctx context.Context, host *netlab.Host, settings ...string) (*servers, error) {
	site, err := demosite.Open(ctx, host, demosite.Options{STUN: true, Settings: settings})
	if err != nil {
		return nil, err
	}
	return &servers{site}, nil
}

// fault has the origin answer segments with an error, or not any more: none, 404, 500, slow.
func (s *servers) fault(kind string) error {
	response, err := s.Client.Post("http://"+s.Admin()+"/origin/fault?kind="+kind, "", nil)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("origin fault %s: %s", kind, response.Status)
	}
	return nil
}

// served is what the servers sent, by their own count.
func (s *servers) served() (Served, error) {
	sums, err := s.metrics()
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

// metrics reads the admin port's page; the result adds up the series of a name that have a label.
func (s *servers) metrics() (func(name string, labels ...string) int64, error) {
	response, err := s.Client.Get("http://" + s.Admin() + "/metrics")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	series := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseFloat(value, 64); ok && err == nil {
			series[name] = n
		}
	}
	return func(name string, labels ...string) int64 {
		sum := 0.0
	next:
		for key, n := range series {
			if key != name && !strings.HasPrefix(key, name+"{") {
				continue
			}
			for _, l := range labels {
				if !strings.Contains(key, l) {
					continue next
				}
			}
			sum += n
		}
		return int64(sum)
	}, lines.Err()
}
