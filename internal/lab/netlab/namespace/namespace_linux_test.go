package namespace

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// kind keeps what these tests make apart from labs that run meanwhile.
const kind = "leeway-test"

func own(t *testing.T) *Owner {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("continuous integration runs as root")
		}
		t.Skip("network namespaces need root")
	}
	o, err := Own(kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

func create(t *testing.T, o *Owner, name string) *Namespace {
	t.Helper()
	n, err := Create(o.Space(name))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func present(name string) bool {
	_, err := os.Stat(filepath.Join(nameDir, name))
	return err == nil
}

func devices(t *testing.T) []net.Interface {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestDoIsInsideAndComesHome(t *testing.T) {
	o := own(t)
	n := create(t, o, "a")
	before, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	failure := errors.New("told")
	for range 100 {
		err := n.Do(func() error {
			inside, err := os.Readlink("/proc/thread-self/ns/net")
			if err != nil || inside == before {
				t.Errorf("inside is %s, outside %s, %v", inside, before, err)
			}
			if all := devices(t); len(all) != 1 || all[0].Name != "lo" {
				t.Errorf("a new namespace has %v", all)
			}
			return failure
		})
		if !errors.Is(err, failure) {
			t.Fatalf("Do returned %v", err)
		}
		if after, err := os.Readlink("/proc/thread-self/ns/net"); err != nil || after != before {
			t.Fatalf("afterwards in %s, was in %s, %v", after, before, err)
		}
	}
}

func TestCloseEndsProcesses(t *testing.T) {
	o := own(t)
	n := create(t, o, "a")
	cmd := exec.Command("sleep", "600")
	if err := n.Do(cmd.Start); err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if present(n.Name()) {
		t.Error("its name is still there")
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.String() != "signal: killed" {
		t.Errorf("the process ended with %v", err)
	}
	if err := Remove(n.Name()); err != nil {
		t.Errorf("removing what is gone: %v", err)
	}
}

func TestNamesAreNotSharedOrReused(t *testing.T) {
	o := own(t)
	other := own(t)
	if o.Space("a") == other.Space("a") {
		t.Fatalf("two owners make %s", o.Space("a"))
	}
	create(t, o, "a")
	if _, err := Create(o.Space("a")); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second of the same name: %v", err)
	}
}

func TestSweepTakesWhatTheDeadLeft(t *testing.T) {
	alive, dead := own(t), own(t)
	create(t, alive, "a")
	create(t, dead, "a")
	if err := dead.lock.Close(); err != nil { // as the kernel does when a process ends
		t.Fatal(err)
	}
	if err := Sweep(kind); err != nil {
		t.Fatal(err)
	}
	if present(dead.Space("a")) || !present(alive.Space("a")) {
		t.Errorf("the dead owner's namespace is there: %v, the living one's: %v", present(dead.Space("a")), present(alive.Space("a")))
	}
	if _, err := os.Stat(dead.lock.Name()); !os.IsNotExist(err) {
		t.Errorf("the dead owner's lock: %v", err)
	}
	again, err := tryLock(dead.lock.Name()) // so that closing it once more finds what it expects
	if err != nil || again == nil {
		t.Fatal(again, err)
	}
	dead.lock = again
}

func TestALockIsOneOwners(t *testing.T) {
	own(t)
	path := filepath.Join(t.TempDir(), "lock")
	first, err := tryLock(path)
	if err != nil || first == nil {
		t.Fatal(first, err)
	}
	if second, err := tryLock(path); err != nil || second != nil {
		t.Errorf("a second got %v, %v", second, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if third, err := tryLock(path); err != nil || third == nil {
		t.Errorf("after the first had gone, a third got %v, %v", third, err)
	}
}
