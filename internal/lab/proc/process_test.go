package proc

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

func TestWhatTheSystemTellsOfAProcess(t *testing.T) {
	before, err := CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; {
		if after, err := CPU(os.Getpid()); err != nil || after > before {
			break
		}
		if time.Now().After(end) {
			t.Fatal("ten seconds of work took no time of a processor")
		}
	}
	if rss, err := Resident(os.Getpid()); err != nil || rss < 1<<20 {
		t.Errorf("%d bytes resident, %v", rss, err)
	}
	if _, err := CPU(-1); err == nil {
		t.Error("there is no such process")
	}
}

func TestAFamilyHasItsRootAndItsChildren(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Wait() }()
	defer func() { _ = child.Process.Kill() }()
	family := Family(os.Getpid())
	if !slices.Contains(family, os.Getpid()) || !slices.Contains(family, child.Process.Pid) {
		t.Errorf("family %v, without %d and %d", family, os.Getpid(), child.Process.Pid)
	}
	if alone := Family(child.Process.Pid); !slices.Equal(alone, []int{child.Process.Pid}) {
		t.Errorf("a child without children has the family %v", alone)
	}
	if Family(1<<30) != nil {
		t.Error("there is no such process")
	}
}
