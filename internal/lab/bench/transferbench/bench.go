// Package transferbench is `leeway-lab bench transfer`: goodput and CPU time of our data path beside a bare pion data
// channel, as it comes and tuned, and beside kernel TCP (CUBIC), each pair of ends in processes of their own; either end may be a page in a browser.
package transferbench

import (
	"context"
	"fmt"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/webrtcend"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

const roleEnd = "end"

// Bench is the bench.
var Bench = bench.Bench{
	Name:  "transfer",
	About: "Goodput and CPU time of a link's data path, beside bare pion and kernel TCP (CUBIC) on the same path.",
	Roles: map[string]bench.Role{roleEnd: end},
}

func init() { Bench.Cases = cases() } // Bench's own functions name it

// Times of one measurement on loopback.
const (
	loopbackWarm = time.Second
	loopbackRun  = 4 * time.Second
)

// bareMessage is the message size of the baselines, bytes.
const bareMessage = 65536 - 1

const mega = 1e6

func cases() []bench.Case {
	list := []bench.Case{{
		Name:  "loopback",
		About: "One link between two processes on loopback, the library's defaults.",
		Figures: []bench.Figure{
			{Name: "goodput", Unit: "MB/s"},
			{Name: "goodput_default", Unit: "MB/s"},
			{Name: "goodput_tuned", Unit: "MB/s"},
			{Name: "goodput_cubic", Unit: "MB/s"},
			{Name: "cpu", Unit: "s/GB"},
			{Name: "cpu_default", Unit: "s/GB"},
			{Name: "cpu_tuned", Unit: "s/GB"},
			{Name: "goodput_vs_default", Goal: ">= 2"},
			{Name: "goodput_vs_tuned", Goal: ">= 0.95"},
			{Name: "cpu_vs_tuned", Goal: "<= 1.15"},
			{Name: "goodput_vs_cubic"},
			{Name: "longest_silence", Unit: "s", Goal: "< 1"},
		},
		Run: func(ctx context.Context, r *bench.Run) (bench.Sample, error) { return loopback(ctx, r) },
	}}
	for _, p := range paths {
		list = append(list, p.bench())
	}
	list = append(list, lanes()...)
	list = append(list, pageCosts()...)
	list = append(list, browsers()...)
	list = append(list, sweeps()...)
	return list
}

func ours() load {
	p := peer.DefaultPlan
	return load{kind: kindLink, channels: p.Data, message: p.Message, links: 1, warm: loopbackWarm, run: loopbackRun}
}

var here = place{name: "here", addr: "127.0.0.1"}

func loopback(ctx context.Context, r *bench.Run) (bench.Sample, error) {
	bare := load{channels: 1, message: bareMessage, links: 1, warm: loopbackWarm, run: loopbackRun}
	outcomes := map[string]*outcome{}
	loads := []load{ours()}
	for _, kind := range []string{kindDefault, kindTuned, kindTCP} {
		l := bare
		l.kind = kind
		loads = append(loads, l)
	}
	if r.Number%2 == 1 { // what warms up or wears off must not favor one of them
		loads[0], loads[1], loads[2], loads[3] = loads[3], loads[2], loads[1], loads[0]
	}
	for _, l := range loads {
		o, err := move(ctx, r, l, here, here)
		if err != nil {
			return bench.Sample{}, err
		}
		outcomes[l.kind] = o
		r.Logf("  %s: %.1f MB/s, %.1f CPU-s/GB, longest silence %.3f s", l.kind, o.rate/mega, o.cpu, o.silence)
	}
	link, plain, tuned, tcp := outcomes[kindLink], outcomes[kindDefault], outcomes[kindTuned], outcomes[kindTCP]
	return bench.Sample{Void: capped(link.buffers), Values: map[string]float64{
		"goodput": link.rate / mega, "goodput_default": plain.rate / mega, "goodput_tuned": tuned.rate / mega, "goodput_cubic": tcp.rate / mega,
		"cpu": link.cpu, "cpu_default": plain.cpu, "cpu_tuned": tuned.cpu,
		"goodput_vs_default": link.rate / plain.rate, "goodput_vs_tuned": link.rate / tuned.rate, "goodput_vs_cubic": link.rate / tcp.rate,
		"cpu_vs_tuned": link.cpu / tuned.cpu, "longest_silence": link.silence,
	}}, nil
}

// capped says why nothing can be claimed from a machine whose kernel gives smaller socket buffers than were asked.
func capped(buffers [2]int) string {
	if min(buffers[0], buffers[1]) >= webrtcend.SocketBuffer {
		return ""
	}
	return fmt.Sprintf("the kernel caps socket buffers at %d and %d bytes (read, write): sysctl -w net.core.rmem_max=%d net.core.wmem_max=%d",
		buffers[0], buffers[1], webrtcend.SocketBuffer, webrtcend.SocketBuffer)
}
