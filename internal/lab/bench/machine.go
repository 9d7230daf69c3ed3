package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/buildinfo"
)

// Machine is where a result comes from, and what ran there.
type Machine struct {
	Commit      string   `json:"commit"`             // of leeway-lab, 12 hexadecimal digits, with a + where its tree had changes; empty when not built from a clone
	Measured    string   `json:"measured,omitempty"` // commit of the leeway that LEEWAY_BINARY names; empty when it names none: the one beside is of the same commit
	CPU         string   `json:"cpu"`
	Cores       int      `json:"cores"`
	MemoryBytes int64    `json:"memory_bytes"`
	Kernel      string   `json:"kernel"`
	Go          string   `json:"go"`
	Browsers    []string `json:"browsers"`
}

func (m Machine) String() string {
	text := fmt.Sprintf("%s, %d cores, %.0f GiB, Linux %s, %s, %s",
		m.CPU, m.Cores, float64(m.MemoryBytes)/(1<<30), m.Kernel, m.Go, strings.Join(m.Browsers, ", "))
	if m.Measured != "" {
		text += "; leeway of commit " + m.Measured
	}
	return text
}

// describe reads what the system tells; what it does not tell stays empty.
func describe(ctx context.Context) Machine {
	m := Machine{Cores: runtime.NumCPU(), Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH, Browsers: []string{}}
	commit, changed := buildinfo.Commit()
	if m.Commit = commit; changed {
		m.Commit += "+"
	}
	if named := os.Getenv(binaryVariable); named != "" {
		m.Measured = "unknown"
		if commit, err := commitOf(named); err == nil && commit != "" {
			m.Measured = commit[:min(12, len(commit))]
		}
	}
	m.CPU = field("/proc/cpuinfo", "model name")
	if kb, err := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 10, 64); err == nil {
		m.MemoryBytes = kb << 10
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = string(bytes.TrimSpace(b))
	}
	for _, b := range [][2]string{{"LEEWAY_CHROMIUM", "chromium"}, {"LEEWAY_FIREFOX", "firefox-esr"}} {
		command := b[1]
		if named := os.Getenv(b[0]); named != "" {
			command = named
		}
		patient, cancel := context.WithTimeout(ctx, 5*time.Second)
		if out, err := exec.CommandContext(patient, command, "--version").Output(); err == nil {
			m.Browsers = append(m.Browsers, string(bytes.TrimSpace(out)))
		}
		cancel()
	}
	return m
}

// field returns the value of the first line of a "name : value" file that has the name.
func field(file, name string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
