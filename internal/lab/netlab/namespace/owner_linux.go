package namespace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// lockDir holds one file per living owner. The kernel drops a lock when its process ends, however it ends; a process
// number would say less, because containers count their own.
const lockDir = "/run/leeway-netlab"

// Owner makes namespaces: one lab of one process.
type Owner struct {
	name string
	lock *os.File
}

// Own registers a new owner, named after kind and the process. Namespaces are then to be called Owner.Space(…).
func Own(kind string) (*Owner, error) {
	if err := os.MkdirAll(lockDir, 0o755); err != nil {
		return nil, fmt.Errorf("namespaces: %w", err)
	}
	for n := 0; ; n++ {
		name := fmt.Sprintf("%s-%d-%d", kind, os.Getpid(), n)
		lock, err := tryLock(filepath.Join(lockDir, name))
		if err != nil {
			return nil, fmt.Errorf("namespaces: %w", err)
		}
		if lock != nil {
			o := &Owner{name: name, lock: lock}
			if err := o.clear(); err != nil { // a name that was used before, by a process that is gone
				return nil, errors.Join(err, o.Close())
			}
			return o, nil
		}
	}
}

// Space returns the full name of the owner's namespace called name.
func (o *Owner) Space(name string) string { return o.name + "-" + name }

// Close removes all of the owner's namespaces and ends what runs in them.
func (o *Owner) Close() error {
	err := o.clear()
	err = errors.Join(err, os.Remove(o.lock.Name()))
	return errors.Join(err, o.lock.Close())
}

func (o *Owner) clear() error { return Remove(list(o.name + "-")...) }

// Sweep removes what owners of this kind left when their processes died.
func Sweep(kind string) error {
	entries, err := os.ReadDir(lockDir)
	if err != nil {
		if os.IsNotExist(err) {
			return nil
		}
		return fmt.Errorf("namespaces: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), kind+"-") {
			continue
		}
		lock, err := tryLock(filepath.Join(lockDir, e.Name()))
		if err != nil {
			errs = append(errs, err)
		} else if lock != nil {
			errs = append(errs, (&Owner{name: e.Name(), lock: lock}).Close())
		}
	}
	return errors.Join(errs...)
}

// tryLock makes and locks a file; nil means that another process holds the lock.
func tryLock(path string) (*os.File, error) {
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == unix.EWOULDBLOCK {
			return nil, file.Close()
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("flock %s: %w", path, err), file.Close())
		}
		// If another process removed the file while we waited for its lock, no other process sees our lock.
		var held, there unix.Stat_t
		if unix.Fstat(int(file.Fd()), &held) == nil && unix.Stat(path, &there) == nil && held.Ino == there.Ino {
			return file, nil
		}
		_ = file.Close()
	}
}
