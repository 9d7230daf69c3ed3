// Package namespace makes Linux network namespaces, runs code in them and removes them with everything inside.
//
// A namespace has a name below /run/netns, where ip and nsenter find it too. Names begin with the owner that made them,
// and an owner holds a lock as long as its process lives, so that Sweep can tell what was left behind.
package namespace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	nameDir = "/run/netns"
	// killWait is how long killed processes may take to go.
	killWait = 5 * time.Second
)

// Namespace is one network namespace.
type Namespace struct {
	name string
	file *os.File
}

// Create makes a namespace of this name.
func Create(name string) (*Namespace, error) {
	if err := os.MkdirAll(nameDir, 0o755); err != nil {
		return nil, fmt.Errorf("namespace %s: %w", name, err)
	}
	path := filepath.Join(nameDir, name)
	made := make(chan error, 1)
	go func() {
		// The thread is not unlocked: it ends with the goroutine, and no other goroutine gets a thread in the wrong namespace.
		runtime.LockOSThread()
		made <- mount(path)
	}()
	if err := <-made; err != nil {
		return nil, fmt.Errorf("namespace %s: %w", name, err)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("namespace %s: %w", name, errors.Join(err, Remove(name)))
	}
	return &Namespace{name: name, file: file}, nil
}

// mount moves the calling thread to a new namespace and names it.
func mount(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	_ = file.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return errors.Join(os.NewSyscallError("unshare", err), os.Remove(path))
	}
	if err := unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, ""); err != nil {
		return errors.Join(os.NewSyscallError("mount", err), os.Remove(path))
	}
	return nil
}

// Name of the namespace, as ip netns lists it.
func (n *Namespace) Name() string { return n.name }

// Path of the file that nsenter --net= takes.
func (n *Namespace) Path() string { return filepath.Join(nameDir, n.name) }

// FD is a file descriptor of the namespace, valid until Close.
func (n *Namespace) FD() int { return int(n.file.Fd()) }

// Do calls fn on a thread inside the namespace. A socket belongs for good to the namespace in which it was made, so fn
// need only make it. What fn starts as a goroutine runs outside.
func (n *Namespace) Do(fn func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("namespace %s: %w", n.name, err)
	}
	defer home.Close()
	if err := unix.Setns(n.FD(), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("namespace %s: %w", n.name, os.NewSyscallError("setns", err))
	}
	defer func() {
		// A thread that cannot go home stays locked, so that no other goroutine gets it.
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
	}()
	return fn()
}

// Close removes the namespace and ends every process in it.
func (n *Namespace) Close() error {
	n.Release()
	return Remove(n.name)
}

// Release gives up the file by which the namespace is entered, and leaves the rest to the part that removes it.
func (n *Namespace) Release() { _ = n.file.Close() }

// Remove ends every process in the namespaces of these names and removes them. It looks at all of them at once, because
// looking means asking every process of the machine.
func Remove(names ...string) error {
	if err := end(names); err != nil {
		return fmt.Errorf("namespaces %v: %w", names, err)
	}
	var errs []error
	for _, name := range names {
		path := filepath.Join(nameDir, name)
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && err != unix.EINVAL && err != unix.ENOENT {
			errs = append(errs, fmt.Errorf("namespace %s: %w", name, os.NewSyscallError("umount", err)))
		}
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			errs = append(errs, fmt.Errorf("namespace %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// identity tells namespaces apart.
type identity struct{ dev, ino uint64 }

func identify(path string) (identity, error) {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return identity{}, err
	}
	return identity{s.Dev, s.Ino}, nil
}

// end kills what runs in the namespaces until nothing does.
func end(names []string) error {
	spaces := map[identity]bool{}
	for _, name := range names {
		id, err := identify(filepath.Join(nameDir, name))
		if err == unix.ENOENT {
			continue
		}
		if err != nil {
			return err
		}
		spaces[id] = true
	}
	if len(spaces) == 0 {
		return nil
	}
	for deadline := time.Now().Add(killWait); ; {
		running, err := processes(spaces)
		if err != nil || len(running) == 0 {
			return err
		}
		for _, pid := range running {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && err != unix.ESRCH {
				return fmt.Errorf("process %d: %w", pid, err)
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v do not end", running)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// processes lists those in the namespaces, without this one, of which a thread may be inside for the moment.
func processes(spaces map[identity]bool) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if id, err := identify(filepath.Join("/proc", e.Name(), "ns/net")); err == nil && spaces[id] {
			found = append(found, pid)
		}
	}
	return found, nil
}

// list returns the names of namespaces that begin with prefix.
func list(prefix string) []string {
	entries, err := os.ReadDir(nameDir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	return names
}
