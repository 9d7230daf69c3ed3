package proc

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leeway-video/leeway/internal/testkit"
)

// TestAThreadThatEndsTakesNothingWithIt: what it has used is its process's, and hides nothing that other threads use meanwhile.
func TestAThreadThatEndsTakesNothingWithIt(t *testing.T) {
	cpu := func() float64 {
		used, err := CPU(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		return used
	}
	ends := make(chan int)
	var work func()
	work = func() {
		runtime.LockOSThread() // and not unlocked: the thread ends with its goroutine
		id := unix.Gettid()
		if id == os.Getpid() { // the first one does not
			defer runtime.UnlockOSThread()
			go work()
			return
		}
		for begun := cpu(); cpu() < begun+0.05; {
		}
		ends <- id
	}
	go work()
	thread, used := <-ends, cpu()
	testkit.Eventually(t, "the thread has ended", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", thread))
		return err != nil
	})
	if now := cpu(); now < used {
		t.Errorf("%v s once the thread has ended, %v s before", now, used)
	}
}

// TestNoClockIsTakenForAnothers: the number of the clock has room for few bits of a process's.
func TestNoClockIsTakenForAnothers(t *testing.T) {
	for _, pid := range []int{-1, 0, mostPID + 1, 1 << 30} {
		if used, err := CPU(pid); err == nil {
			t.Errorf("process %d has used %v s", pid, used)
		}
	}
}
