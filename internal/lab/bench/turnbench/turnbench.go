// Package turnbench is `leeway-lab bench turn`: what relaying costs. The relay is a process of its own, asked over loopback by
// clients in this one; Debian's coturn goes through the same seconds under the same clients. Processor time is compared, not
// speed: on a machine of two cores the clients are the limit. Where speed is (flood), clients are made to cost little, have a core
// of their own, and nothing is claimed where they were the limit all the same.
package turnbench

import (
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/turnclient"
)

// secret is of servers that live for a measurement, on loopback.
const secret = "only-for-this-measurement-0123456789abcdef"

// Bench is the bench.
var Bench = bench.Bench{
	Name:  "turn",
	About: "What a relay costs: processor time for a gigabyte and for a packet, beside coturn; memory under usernames that come and go; how many allocations and packets it takes.",
	Cases: slices.Concat([]bench.Case{
		{
			Name: "steady", About: "100 Mbit/s of 1,200 bytes from 20 clients to a peer that sends them back: 200 Mbit/s relayed. coturn in the same run.",
			Figures: figures("<= 1.25"), Run: traffic{size: 1200, perSecond: 100_000_000 / 8 / 1200, clients: 20, long: 5 * time.Second}.run,
		},
		{
			Name: "small", About: "The same with 120 bytes, 8,000 packets a second each way.",
			Figures: figures(""), Run: traffic{size: 120, perSecond: 8000, clients: 20, long: 5 * time.Second}.run,
		},
		{
			Name: "usernames", About: "100,000 users who come, are given an allocation, and go. coturn in the same run.", Extra: true,
			Figures: []bench.Figure{
				{Name: "grown_bytes_per_user", Unit: "B", Goal: "<= 100"}, {Name: "coturn_grown_bytes_per_user", Unit: "B"},
				{Name: "resident_bytes", Unit: "B"}, {Name: "coturn_resident_bytes", Unit: "B"},
				{Name: "users_per_second", Unit: "1/s"}, {Name: "coturn_users_per_second", Unit: "1/s"},
			},
			Run: usernames{count: 100_000, warm: 10_000}.run,
		},
		{
			Name: "allocations", Extra: true, Needs: enoughFiles, Figures: manyFigures(),
			About: "As many allocations as files and ports allow, more than the usual range of ports has; 100 of them carry 4,000 packets of 1,200 bytes a second each way, alone and then among all. coturn in the same run.",
			Run:   many{few: 100, size: 1200, perSecond: 4000, long: 4 * time.Second}.run,
		},
	}, floods(64, 128, 256, 512, 1024, 1200)),
	Roles: map[string]bench.Role{"clients": clientsRole},
}

func figures(ratio string) []bench.Figure {
	return []bench.Figure{
		{Name: "cpu_vs_coturn", Goal: ratio, Optional: true}, // coturn may be missing
		{Name: "cpu_seconds_per_gb", Unit: "s/GB"}, {Name: "coturn_cpu_seconds_per_gb", Unit: "s/GB"},
		{
			Name: "packets_per_core", Unit: "1/s",
			Reference: &bench.Reference{Value: 45_000, Source: "pion/turn#288: 40 to 50 thousand of 120 bytes for a UDP listener"},
		},
		{Name: "coturn_packets_per_core", Unit: "1/s"},
		{Name: "loss_permille", Goal: "<= 1"}, {Name: "coturn_loss_permille"},
	}
}

// allocate asks a server as a user would whose tracker minted the credentials.
func allocate(server, holder string) (*turnclient.Allocation, error) {
	s, err := access.NewRelaySecret(secret)
	if err != nil {
		return nil, err
	}
	username, password := s.Mint("bench", holder, time.Now().Add(time.Hour))
	return turnclient.Allocate(server, username, password)
}
