package swarmbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/leeway-video/leeway/internal/headless"
	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/lab/proc"
	"github.com/leeway-video/leeway/internal/viewer"
)

// reading is what a process holds at a moment of rest, in bytes where it is not a count.
type reading struct {
	Goroutines, Files, Heap, RSS float64
	Store                        float64 // pieces; those in memory are not part of Heap
	Sessions, Links              float64
}

func (r reading) String() string {
	const mb = 1e6
	return fmt.Sprintf("%.0f goroutines, %.0f files, heap %.1f MB, RSS %.1f MB, store %.1f MB, %.0f sessions, %.0f links",
		r.Goroutines, r.Files, r.Heap/mb, r.RSS/mb, r.Store/mb, r.Sessions, r.Links)
}

// reading collects garbage in the servers' process, and reads what is left.
func (s *servers) reading() (reading, error) {
	for range 2 { // what has a finalizer goes with the second
		response, err := s.Ask(http.MethodGet, "/debug/pprof/heap?gc=1")
		if err != nil {
			return reading{}, err
		}
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			return reading{}, errors.Join(err, errors.New("collect garbage: "+response.Status))
		}
	}
	sums, err := s.Metrics()
	if err != nil {
		return reading{}, err
	}
	sum := func(name string, labels ...string) float64 { return float64(sums(name, labels...)) }
	return reading{
		Goroutines: sum("go_goroutines"), Files: sum("process_open_fds"), RSS: sum("process_resident_memory_bytes"),
		Heap:  sum("go_memstats_heap_alloc_bytes") - sum("leeway_seed_store_bytes", `tier="memory"`),
		Store: sum("leeway_seed_store_bytes"), Sessions: sum("leeway_tracker_sessions"), Links: sum("leeway_seed_links"),
	}, nil
}

// roleGuest is the child process of the viewer that stays.
const roleGuest = "guest"

// guestRole plays until its input ends, jumping back before the film's end, and answers each line with a reading.
func guestRole(_ context.Context, in *json.Decoder, out *bench.Writer) error {
	o, cfg, err := readOrder(in)
	if err != nil {
		return err
	}
	const lap = 20 * time.Second // a part of the film at any soak's speed
	for at := lap; at < o.Stay; at += lap {
		cfg.Seeks = append(cfg.Seeks, viewer.Seek{After: at, To: (at * 7) % (filmLength / 2)})
	}
	v, err := headless.Start(cfg, headless.Network{})
	if err != nil {
		return err
	}
	defer v.Close()
	return bench.Obey(in, func(struct{}) error {
		if err := v.Err(); err != nil {
			return fmt.Errorf("the viewer that stays did not: %w", err)
		}
		at, err := own(v.Summary())
		if err != nil {
			return err
		}
		return out.Write(at)
	})
}

// own is a reading of this process.
func own(sum viewer.Summary) (reading, error) {
	debug.FreeOSMemory() // collects garbage too
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return reading{}, err
	}
	resident, err := proc.Resident(os.Getpid())
	if err != nil {
		return reading{}, err
	}
	store := float64(sum.StoreBytes)
	return reading{
		Goroutines: float64(runtime.NumGoroutine()), Files: float64(len(files)), Heap: float64(m.HeapAlloc) - store, RSS: float64(resident),
		Store: store, Links: float64(sum.Links),
	}, nil
}

// invite starts the viewer that stays.
func (s *stage) invite(r *bench.Run, host *netlab.Host, stay time.Duration) (*bench.Process, error) {
	guest, err := r.Start(func(name string, arg ...string) (*exec.Cmd, func() error) {
		cmd := host.Command(context.Background(), name, arg...)
		return cmd.Cmd, cmd.Start
	}, benchName, roleGuest, "guest")
	if err != nil {
		return nil, err
	}
	if err := guest.Send(order{Manifest: s.servers.Manifest(), Peers: true, Speed: s.speed, Stay: stay}); err != nil {
		return nil, errors.Join(err, guest.Stop())
	}
	return guest, nil
}
