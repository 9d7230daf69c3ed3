package manifests

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// node runs a script of test/kube and returns its exit code.
func node(t *testing.T, script string, args ...string) (code int, out string) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("node is missing")
	}
	text, err := exec.Command("node", append([]string{filepath.Join(root, "test/kube", script)}, args...)...).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	return code, string(text)
}

// TestAVerdictTellsAFailureFromASlowMachine: what make kube-test makes of its viewers, and of what the processors did meanwhile.
func TestAVerdictTellsAFailureFromASlowMachine(t *testing.T) {
	const good = `{"watched_ms":60000,"ended":"left","links_opened":3,"reconnects":0,"stats":{"bytes":{"origin":10,"seed":20,"peer":20},"stalls":0,"startup_ms":900}}`
	for name, c := range map[string]struct {
		code   int
		says   string
		viewer string
	}{
		"all well":           {0, "", good},
		"a stall":            {3, "film-2", strings.Replace(good, `"stalls":0`, `"stalls":1`, 1)},
		"no link":            {1, "film-2", strings.Replace(good, `"links_opened":3`, `"links_opened":0`, 1)},
		"never started":      {3, "film-2", strings.Replace(good, `,"startup_ms":900`, ``, 1)},
		"ended by itself":    {1, "film-2", strings.Replace(good, `"left"`, `"error"`, 1)},
		"failed and stalled": {1, "film-2", strings.Replace(strings.Replace(good, `"stalls":0`, `"stalls":1`, 1), `"reconnects":0`, `"reconnects":0,"errors":1`, 1)},
		"the origin serves":  {3, "less than half", strings.Replace(good, `"origin":10`, `"origin":500`, 1)},
		"one is missing":     {1, "1 viewers of 2", ""},
	} {
		file := filepath.Join(t.TempDir(), "film.json")
		if err := os.WriteFile(file, []byte(good+"\n"+c.viewer+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out := node(t, "judge.mjs", "2", file); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("%s: %d %s", name, code, out)
		}
	}
	samples := func(calm, taken int, line string) string {
		return strings.Repeat("0.400 3\n", calm) + strings.Repeat(line, taken)
	}
	for name, c := range map[string]struct {
		slow bool
		text string
	}{
		"nothing was seen":          {false, ""},
		"calm":                      {false, samples(200, 0, "")},
		"pods started":              {false, samples(200, 40, "0.010 20\n")},
		"processors had no time":    {true, samples(140, 60, "0.010 20\n")},
		"seconds came late":         {true, samples(140, 60, "0.300 400\n")},
		"a machine that is shared":  {true, samples(10, 190, "0.000 90\n")},
		"one long pause, then calm": {false, samples(200, 1, "0.000 9000\n")},
	} {
		file := filepath.Join(t.TempDir(), "machine")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out := node(t, "machine.mjs", file)
		if slow := code == 0; slow != c.slow || slow != strings.Contains(out, "its processors were taken") {
			t.Errorf("%s: %d %s", name, code, out)
		}
	}
	// The script has the two as it says: exit code 3 alone can be void, by the same word that make looks for.
	text, err := os.ReadFile(filepath.Join(root, "test/kube/test"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  3) late ", "  *) fail ", "machine.mjs \"$work/machine\"", "exit 75"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("test/kube/test has no %q", want)
		}
	}
}
