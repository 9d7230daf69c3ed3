package load

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/lab/proc"
	"github.com/leeway-video/leeway/internal/procstat"
	"github.com/leeway-video/leeway/internal/testkit"
)

// work has this process use 50 ms of a processor, which may take longer: others may have it meanwhile.
func work() {
	for begun := procstat.CPU(); procstat.CPU() < begun+50*time.Millisecond; {
	}
}

// TestTheServerUnderTestIsMeasured: it is this process, and a second of it is one in which it has worked.
func TestTheServerUnderTestIsMeasured(t *testing.T) {
	u, _, _ := measured()
	u.peer = nil
	u.Tested = os.Getpid()
	s := newSampler(u)
	if one := s.sample(time.Unix(1, 0)); one.PeerCPU != 0 || one.PeerRSS < 1<<20 {
		t.Errorf("at first %v processors, %d bytes", one.PeerCPU, one.PeerRSS)
	}
	work()
	if one := s.sample(time.Unix(2, 0)); one.PeerCPU < 0.02 {
		t.Errorf("%v processors in a second in which it worked for 50 ms", one.PeerCPU)
	}
	s.tested.pid = 1 << 30 // it is gone
	if one := s.sample(time.Unix(3, 0)); one.PeerCPU != 0 || one.PeerRSS != 0 {
		t.Errorf("once it is gone %v processors, %d bytes", one.PeerCPU, one.PeerRSS)
	}
}

// TestAWorkerThatEndsHidesNoOther: a server may have a process for each client, and what one of these has used goes with it.
func TestAWorkerThatEndsHidesNoOther(t *testing.T) {
	worker := exec.Command("sh", "-c", "while :; do :; done")
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the worker has worked", func() bool {
		used, err := proc.CPU(worker.Process.Pid)
		return err != nil || used > 0.2
	})
	server := tested{pid: os.Getpid()}
	server.look(time.Unix(1, 0))
	_ = worker.Process.Kill()
	_ = worker.Wait()
	work()
	if used, _ := server.look(time.Unix(2, 0)); used < 0.02 {
		t.Errorf("%v processors in a second in which the server worked for 50 ms", used)
	}
}

func TestAServerUnderTestThatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		behavior Behavior
		pid      int
		want     string
	}{
		"its own peer": {Echo, os.Getpid(), "starts its own"}, "none": {WHEP, 1 << 30, "no process"}, "fine": {WHEP, os.Getpid(), ""}, "not asked for": {Echo, 0, ""},
	} {
		err := (&Runner{Tested: c.pid, Scenario: Scenario{Groups: []Group{{Behavior: c.behavior}}}}).checkTested()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
