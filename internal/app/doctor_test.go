package app

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/cmdline"
)

// TestDoctorPrints: a line for each check, what to do below it, and colors where Stdout shows them; internal/doctor tests what it finds.
func TestDoctorPrints(t *testing.T) {
	tracker := "ws://" + freeAddress(t)
	for _, colors := range []bool{false, true} {
		var out bytes.Buffer
		err := Run(t.Context(), []string{"doctor", "--tracker", tracker}, Env{Stdout: &out, Stderr: &out, Colors: colors})
		text := out.String()
		if cmdline.ExitCode(err) != 1 || !strings.Contains(text, "[tracker-unreachable]") || !strings.Contains(text, "fix: start the server") || !strings.Contains(text, "skipped") {
			t.Errorf("%v\n%s", err, text)
		}
		if strings.Contains(text, "\x1b[31m") != colors || strings.Contains(text, "\x1b") != colors {
			t.Errorf("colors are %v: %q", colors, text)
		}
	}
}

// TestAnInterruptedDoctorIsNotHealthy: nor does it blame the set-up.
func TestAnInterruptedDoctorIsNotHealthy(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	err := Run(ctx, []string{"doctor", "--tracker", "ws://" + freeAddress(t)}, Env{Stdout: &out, Stderr: &out})
	if cmdline.ExitCode(err) != 1 || out.Len() > 0 {
		t.Errorf("%v %s", err, out.String())
	}
}

// TestTheDoctorReadsTheEnvironment: its configuration is that of the services, whose passwords are variables.
func TestTheDoctorReadsTheEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leeway.yaml")
	if err := os.WriteFile(file, []byte("sites: [{name: films, hosts: [media.example.com], access: public}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bus := "nats://" + freeAddress(t)
	examine := func(environ ...string) (string, error) {
		var out bytes.Buffer
		err := Run(t.Context(), []string{"doctor", "--config", file, "--tracker", "ws://" + freeAddress(t)}, Env{Stdout: &out, Stderr: &out, Environ: environ})
		return out.String(), err
	}
	if out, _ := examine("LEEWAY_NATS_URL=" + bus); !strings.Contains(out, bus) || !strings.Contains(out, "[nats-unreachable]") {
		t.Errorf("%s", out)
	}
	if _, err := examine("LEEWAY_TRACKER_MAX_SESSIONS=many"); cmdline.ExitCode(err) != 2 || !strings.Contains(err.Error(), "LEEWAY_TRACKER_MAX_SESSIONS") {
		t.Errorf("%v", err)
	}
}

// TestTheDoctorDoesNotWaitForNATS: a check has a time of its own, and an interrupt ends it; servers that say nothing take 2 s each.
func TestTheDoctorDoesNotWaitForNATS(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	came := make(chan net.Conn, 1)
	go func() {
		if c, err := silent.Accept(); err == nil {
			came <- c
			cancel()
		}
	}()
	if err := (NATSConfig{URL: "nats://" + silent.Addr().String()}).joins(ctx); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Error(err)
	}
	_ = (<-came).Close()
}
