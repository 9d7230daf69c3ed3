package netlab

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// victimRole in the environment makes the test below the process that gets killed.
const victimRole = "LEEWAY_NETLAB_TEST_VICTIM"

// A lab whose process is killed is removed by its emulator, with every process that ran in it; the next lab takes away
// the lock.
func TestNothingIsLeftBehind(t *testing.T) {
	if os.Getenv(victimRole) != "" {
		lab, a, _, _ := pair(t, Path{})
		child := a.Command(context.Background(), "sh", "-c", "setsid sleep 600 & echo $! $$; exec sleep 600")
		child.Stdout = os.Stdout
		fmt.Println(lab.owner.Space(""))
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
		t.Fatal("was to be killed")
	}
	newLab(t, Options{}) // or skip
	victim := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNothingIsLeftBehind$")
	victim.Env = append(os.Environ(), victimRole+"=1")
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := victim.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var said []string
	for len(said) < 2 && lines.Scan() {
		said = append(said, lines.Text())
	}
	if len(said) < 2 || len(strings.Fields(said[1])) != 2 {
		t.Fatalf("the victim said %q", said)
	}
	prefix, children := said[0], strings.Fields(said[1])
	if got := below("/run/netns", prefix); len(got) != 2 {
		t.Fatalf("the victim has namespaces %v, want two", got)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait()
	for deadline := time.Now().Add(20 * time.Second); len(below("/run/netns", prefix)) > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("%v are still there", below("/run/netns", prefix))
		}
	}
	for _, pid := range children { // gone, or waiting for a parent to ask what became of them
		if space, err := os.Readlink(filepath.Join("/proc", pid, "ns/net")); err == nil {
			t.Errorf("process %s still runs in %s", pid, space)
		}
	}
	newLab(t, Options{})
	if left := below("/run/leeway-netlab", strings.TrimSuffix(prefix, "-")); len(left) > 0 {
		t.Errorf("locks %v were not swept", left)
	}
}

// below lists the files in a folder whose names begin with prefix.
func below(dir, prefix string) []string {
	found, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	if err != nil {
		panic(err)
	}
	return found
}
