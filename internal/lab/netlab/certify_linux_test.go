package netlab

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/netlab/emulator"
)

func TestCertifyNamesWhatWasOff(t *testing.T) {
	// A histogram's last bucket is for the latest; the first for what was on time.
	const last = len(emulator.Bounds)
	punctual := emulator.Histogram{Buckets: [len(emulator.Bounds) + 1]uint64{0: 990, last: 10}}
	late := emulator.Histogram{Buckets: [len(emulator.Bounds) + 1]uint64{0: 980, last: 11}}
	good := Report{Idle: 0.15, Late: punctual, Rounds: punctual}
	if err := good.Certify(); err != nil {
		t.Errorf("a good report: %v", err)
	}
	if err := (Report{Idle: 1}).Certify(); err != nil {
		t.Errorf("a lab in which nothing happened: %v", err)
	}
	for what, c := range map[string]struct {
		spoil func(*Report)
		want  string
		timed bool // Timing complains, too
	}{
		"late":    {func(r *Report) { r.Late = late }, "1.1 % of 991 deliveries", true},
		"away":    {func(r *Report) { r.Rounds = late }, "of 991 rounds of the emulator", true},
		"busy":    {func(r *Report) { r.Idle = 0.149 }, "idle 14.9 % of the time, at least 15 %", false},
		"device":  {func(r *Report) { r.DeviceDrops = 3 }, "3 packets were lost on the way to a line and 0", true},
		"refused": {func(r *Report) { r.Refused = 4 }, "to a line and 4 on the way from it", true},
	} {
		r := good
		c.spoil(&r)
		if err := r.Certify(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", what, err, c.want)
		}
		if err := r.Timing(); (err != nil) != c.timed {
			t.Errorf("%s: Timing says %v", what, err)
		}
	}
}

// An emulator that is stopped says so: it delivered late, or did not see a packet come.
func TestAStoppedEmulatorIsNotCertified(t *testing.T) {
	const delay = 20 * time.Millisecond
	lab, a, b, _ := pair(t, Both(Link{Delay: delay}))
	from, to := udp(t, a), udp(t, b)
	from.send(to.addr(), 1, 100)
	if err := syscall.Kill(lab.emu.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	<-time.After(2 * delay)
	if err := syscall.Kill(lab.emu.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, ok := to.receive(10 * time.Second); !ok {
		t.Fatal("nothing arrived")
	}
	r, err := lab.Report()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Timing(); err == nil || max(r.Late.Max, r.Rounds.Max) < delay/2 {
		t.Errorf("%v: %v, longest round %v", r, err, r.Rounds.Max)
	}
	if err := lab.Mark(); err != nil {
		t.Fatal(err)
	}
	if r, err = lab.Report(); err != nil || r.Late.Count() != 0 || r.Late.Max != 0 {
		t.Errorf("after a mark: %v, %+v", err, r)
	}
}

// With every processor busy the lab itself may still be punctual, but what runs in it had no time of its own.
func TestABusyMachineIsNotCertified(t *testing.T) {
	if runtime.GOMAXPROCS(0) < runtime.NumCPU() {
		t.Skip("this process may not use all of the machine's processors")
	}
	lab, _, _, _ := pair(t, Path{})
	var stop atomic.Bool
	var burning sync.WaitGroup
	for range 16 {
		burning.Go(func() {
			for !stop.Load() {
			}
		})
	}
	if err := lab.Mark(); err != nil {
		t.Fatal(err)
	}
	<-time.After(500 * time.Millisecond)
	r, err := lab.Report()
	stop.Store(true)
	burning.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Certify(); err == nil || !strings.Contains(err.Error(), "the processors were idle") {
		t.Errorf("%v: %v", r, err)
	}
}

func TestADeadEmulatorIsNoticed(t *testing.T) {
	lab, _, _, line := pair(t, Path{})
	if err := syscall.Kill(lab.emu.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := lab.Report(); err == nil || !strings.Contains(err.Error(), "emulator") {
		t.Errorf("Report: %v", err)
	}
	if err := line.Up.Set(Link{}); err == nil {
		t.Error("a line of a dead lab was set")
	}
	if err := lab.Close(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Close: %v", err)
	}
}
