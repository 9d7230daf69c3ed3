package lab

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/cmdline"
)

// lab runs the command line as main does and returns what it printed, and its exit code.
func lab(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	err := Run(t.Context(), args, Streams{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs})
	if err != nil {
		errs.WriteString(err.Error() + "\n")
	}
	return out.String(), errs.String(), cmdline.ExitCode(err)
}

func TestHelp(t *testing.T) {
	for _, command := range []string{"bench", "schedule replay"} {
		out, errs, code := lab(t, "", append(strings.Fields(command), "--help")...)
		if code != 0 || !strings.Contains(out, "Examples:\n\n    leeway-lab") {
			t.Errorf("leeway-lab %s --help: exit code %d, no examples in %q %q", command, code, out, errs)
		}
	}
	if out, _, code := lab(t, ""); code != 0 || !strings.Contains(out, "Usage: leeway-lab") || strings.Contains(out, "bench-child") {
		t.Errorf("leeway-lab alone: %d %q", code, out)
	}
	if out, _, code := lab(t, "", "version"); code != 0 || !strings.HasPrefix(out, "leeway-lab ") {
		t.Errorf("version: %d %q", code, out)
	}
	if _, errs, code := lab(t, "", "tracker"); code != 2 || !strings.Contains(errs, "leeway-lab --help") {
		t.Errorf("a command of the other program: %d %q", code, errs)
	}
}

// TestBenchesAreListed: without a name there is a list, with a wrong one an error that has it.
func TestBenchesAreListed(t *testing.T) {
	list, _, code := lab(t, "", "bench")
	for _, b := range benches() {
		if code != 0 || !strings.Contains(list, b.Name+" ") || !strings.Contains(list, b.About) {
			t.Errorf("%d: %s is not in\n%s", code, b.Name, list)
		}
	}
	if _, errs, code := lab(t, "", "bench", "nothing"); code != 2 || !strings.Contains(errs, list) {
		t.Errorf("%d: %s", code, errs)
	}
}

// TestReplay replays what a viewer recorded, and the same with an action that it did not decide.
func TestReplay(t *testing.T) {
	const recorded = "../../spec/vectors/recorded-go.jsonl"
	out, errs, code := lab(t, "", "schedule", "replay", recorded)
	if code != 0 || !strings.HasSuffix(out, " decisions, 0 differ\n") {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	text, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(string(text), `"actions":[{`, `"actions":[{"type":"wake","at_us":1},{`, 1)
	if out, errs, code := lab(t, forged, "schedule", "replay", "-"); code != 1 || !strings.Contains(out, "recorded [") || !strings.Contains(out, " 1 differ\n") {
		t.Errorf("a forged recording: %d %s%s", code, out, errs)
	}
	if _, errs, code := lab(t, "", "schedule", "replay", filepath.Join(t.TempDir(), "none")); code != 2 || !strings.Contains(errs, "no such file") {
		t.Errorf("no recording: %d %s", code, errs)
	}
}
