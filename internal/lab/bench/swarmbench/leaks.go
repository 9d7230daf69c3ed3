package swarmbench

import (
	"fmt"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// What a process may hold more at the end of a soak than after its first crowd. A crowd of the shortest soak is some
// twenty visits and there are two or three more, so one goroutine, one file or 50 kB kept of each visit is seen.
// Connections to the origin that wait to be used again come and go between rests: three goroutines and two files each, up
// to five.
var growths = []struct {
	name, unit string
	of         func(reading) float64
	most       float64
}{
	{"goroutines_growth", "", func(r reading) float64 { return r.Goroutines }, 30},
	{"files_growth", "", func(r reading) float64 { return r.Files }, 20},
	{"heap_growth", "bytes", func(r reading) float64 { return r.Heap }, 2 << 20},
	// Not all that is free goes back to the system at once.
	{"rss_growth", "bytes", func(r reading) float64 { return r.RSS }, 24 << 20},
}

// soakFigures are what a soak reports: of the servers, and of the viewer that stays.
func soakFigures() []bench.Figure {
	list := []bench.Figure{{Name: "visits", Unit: "", Goal: ">= 20"}}
	for _, who := range []string{"servers", "viewer"} {
		for _, g := range growths {
			list = append(list, bench.Figure{Name: who + "_" + g.name, Unit: g.unit, Goal: fmt.Sprintf("<= %.0f", g.most)})
		}
	}
	return append(list,
		bench.Figure{Name: "store_most", Unit: "bytes", Goal: fmt.Sprintf("<= %d", storeMost)},
		bench.Figure{Name: "viewer_store_most", Unit: "bytes", Goal: fmt.Sprintf("<= %d", viewerStore)},
		bench.Figure{Name: "sessions_left", Unit: "", Goal: "<= 0"},
		bench.Figure{Name: "links_left", Unit: "", Goal: "<= 0"},
	)
}

// storeMost is what a seed's store holds at most, with one segment that is just being put there.
const storeMost = soakMemory + soakDisk + peer.MaxSegment

// viewerStore is what a viewer's store holds at most.
const viewerStore = 64 << 20

// judge makes the figures of a soak from readings at its rests; in each, one session and one link are the guest's.
func judge(servers, viewers []reading) map[string]float64 {
	v := map[string]float64{}
	for _, g := range growths {
		v["servers_"+g.name], v["viewer_"+g.name] = growth(servers, g.of), growth(viewers, g.of)
	}
	for _, r := range servers {
		v["store_most"] = max(v["store_most"], r.Store)
		v["sessions_left"] = max(v["sessions_left"], r.Sessions-1)
		v["links_left"] = max(v["links_left"], r.Links-1)
	}
	for _, r := range viewers {
		v["viewer_store_most"] = max(v["viewer_store_most"], r.Store)
	}
	return v
}

// growth is how much more there is at the last rest than at the first, by the line of least squares through all of them:
// what grows with every crowd counts in full, what happens to be there at one rest hardly.
func growth(list []reading, of func(reading) float64) float64 {
	n := float64(len(list))
	if n < 2 {
		return 0
	}
	var x, y, xx, xy float64
	for i, r := range list {
		at, value := float64(i), of(r)
		x, y, xx, xy = x+at, y+value, xx+at*at, xy+at*value
	}
	return (n*xy - x*y) / (n*xx - x*x) * (n - 1)
}
