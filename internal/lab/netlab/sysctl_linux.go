package netlab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const congestionControl = "net.ipv4.tcp_congestion_control"

// sysctl sets a kernel setting of the calling thread's namespace.
func sysctl(name, value string) error {
	if err := os.WriteFile(settingPath(name), []byte(value), 0o644); err != nil {
		return fmt.Errorf("sysctl %s=%s: %w", name, value, err)
	}
	return nil
}

func settingPath(name string) string {
	return filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
}

// set is sysctl inside the spot. A namespace may only choose among the congestion controls that the machine allows to
// all; where that is the obstacle, the machine's list gets one more, and keeps it.
func (s *spot) set(name, value string) error {
	inside := func() error { return sysctl(name, value) }
	err := s.space.Do(inside)
	if name != congestionControl || !errors.Is(err, unix.EPERM) {
		return err
	}
	const list = "net.ipv4.tcp_allowed_congestion_control"
	allowed, readErr := os.ReadFile(settingPath(list))
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	names := strings.Fields(string(allowed))
	if !slices.Contains(names, value) {
		names = append(names, value)
	}
	if listErr := sysctl(list, strings.Join(names, " ")); listErr != nil {
		return fmt.Errorf("%w (%s is not among %v, which this process may not change: choose one of them, or run in the machine's own network namespace)",
			err, value, allowed)
	}
	return s.space.Do(inside)
}
