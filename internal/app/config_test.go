package app

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/cmdline"
)

var update = flag.Bool("update", false, "write the golden files anew")

// leeway runs the command line as main does and returns what it printed, and its exit code.
func leeway(t *testing.T, environ []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	err := Run(t.Context(), args, Env{Stdout: &out, Stderr: &errs, Environ: append([]string{"HOME=/home/someone"}, environ...)})
	if err != nil {
		errs.WriteString(err.Error() + "\n")
	}
	return out.String(), errs.String(), cmdline.ExitCode(err)
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if got != string(want) {
		t.Errorf("%s:\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}

func TestConfigCheck(t *testing.T) {
	files, err := filepath.Glob("testdata/check/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			out, errs, code := leeway(t, nil, "config", "check", file)
			fine := strings.Contains(out, ": ok,")
			if fine != (code == 0) || !fine && code != 2 {
				t.Errorf("exit code %d after\n%s%s", code, out, errs)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".golden", out)
		})
	}
}

func TestConfigCheckOfAMissingFile(t *testing.T) {
	out, errs, code := leeway(t, nil, "config", "check", "testdata/none.yaml")
	if code != 2 || !strings.Contains(out, "testdata/none.yaml: cannot be read: no such file") {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
}

func TestConfigPrint(t *testing.T) {
	out, errs, code := leeway(t, nil, "config", "print")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	golden(t, "testdata/print.golden", out)
}

func TestPrintedConfigurationIsFine(t *testing.T) {
	out, _, _ := leeway(t, nil, "--config", "testdata/check/fine.yaml", "config", "print")
	file := filepath.Join(t.TempDir(), "printed.yaml")
	if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, _, code := leeway(t, nil, "config", "check", file); code != 0 {
		t.Errorf("what config print wrote does not pass config check:\n%s", out)
	}
}

func TestPrecedence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(file, []byte("up: {listen: '127.0.0.1:1', admin: '127.0.0.1:1', open: true}\nlog: {level: warn}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, errs, code := leeway(t, []string{"LEEWAY_CONFIG=" + file, "LEEWAY_UP_LISTEN=127.0.0.1:2", "LEEWAY_LOG_LEVEL=debug"},
		"--log-level=error", "config", "print")
	if code != 0 {
		t.Fatal(errs)
	}
	for _, want := range []string{"level: error", "listen: 127.0.0.1:2", "admin: 127.0.0.1:1", "open: true", "data_dir: /home/someone/.local/share/leeway"} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
}

func TestEnvironment(t *testing.T) {
	config := defaults(func(string) string { return "" })
	warnings, err := loadEnviron([]string{"LEEWAY_UP_LISTN=x", "LEEWAY_UP_ORIGIN_RATE=9", "LEEWAY_UP_OPEN=true", "LEEWAY_CHROMIUM=/x", "LEEWAY_UP_SERVICE_HOST=10.0.0.1"}, config)
	if err != nil || config.Up.OriginRate != 9 || !config.Up.Open {
		t.Errorf("%v, %+v", err, config.Up)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], `LEEWAY_UP_LISTN sets nothing; did you mean "listen"?`) {
		t.Errorf("warnings: %q", warnings)
	}
	if _, err := loadEnviron([]string{"LEEWAY_UP_ORIGIN_RATE=fast"}, config); err == nil || !strings.Contains(err.Error(), "a whole number") {
		t.Errorf("a wrong number: %v", err)
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	type section struct {
		Token string   `yaml:"token" secret:"true"`
		URLs  []string `yaml:"urls"`
	}
	s := struct {
		One section `yaml:"one"`
	}{section{"hunter2", []string{"nats://leeway:hunter2@nats:4222"}}}
	redact(reflect.ValueOf(&s).Elem())
	if s.One.Token != redacted || strings.Contains(s.One.URLs[0], "hunter2") {
		t.Errorf("%+v", s)
	}
}

func TestUsageErrorsSayWhatToTry(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"confg"}, `did you mean "config"`},
		{[]string{"up", "--listn=x"}, `did you mean "--listen"`},
		{[]string{"up", "--listen=0.0.0.0:0"}, "--open"},
		{[]string{"up", "--listen=nowhere"}, "HOST:PORT"},
		{[]string{"up", "--origin-fault=403"}, "none, 404, 500, slow"},
		{[]string{"--log-format=xml", "version"}, ""},
		{[]string{"up", "--media=" + os.TempDir()}, "master.m3u8"},
	} {
		_, errs, code := leeway(t, nil, c.args...)
		if c.want != "" && (code != 2 || !strings.Contains(errs, c.want)) {
			t.Errorf("leeway %v: exit code %d, %q; want 2 and %q", c.args, code, errs, c.want)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, command := range []string{"up", "tracker", "seed", "purge", "switch", "film", "config check", "config print"} {
		out, errs, code := leeway(t, nil, append(strings.Fields(command), "--help")...)
		if code != 0 || !strings.Contains(out, "Examples:\n\n    leeway") {
			t.Errorf("leeway %s --help: exit code %d, no examples in %q %q", command, code, out, errs)
		}
	}
	if out, _, code := leeway(t, nil); code != 0 || !strings.Contains(out, "Usage: leeway") {
		t.Errorf("leeway alone: %d %q", code, out)
	}
	if out, _, _ := leeway(t, nil, "version"); !strings.HasPrefix(out, "leeway "+Version) {
		t.Errorf("version: %q", out)
	}
}

// TestCommandsThatMovedNameWhereTo: scripts of operators still say leeway bench.
func TestCommandsThatMovedNameWhereTo(t *testing.T) {
	for _, args := range [][]string{{"bench"}, {"bench", "swarm", "--case", "smoke", "--runs", "1"}, {"schedule", "replay", "run.jsonl"}} {
		out, errs, code := leeway(t, nil, args...)
		if code != 2 || !strings.Contains(errs, "leeway-lab "+args[0]) {
			t.Errorf("leeway %v: exit code %d, %q %q", args, code, out, errs)
		}
	}
	if out, _, _ := leeway(t, nil, "bench", "--help"); !strings.Contains(out, "leeway-lab") {
		t.Errorf("bench --help: %s", out)
	}
	if out, _, _ := leeway(t, nil, "--help"); strings.Contains(out, "bench") || strings.Contains(out, "schedule ") {
		t.Errorf("the help lists what moved: %s", out)
	}
}

func TestVersionIsThePackages(t *testing.T) {
	text, err := os.ReadFile("../../web/packages/leeway/package.json")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"version": "`+Version+`"`) {
		t.Errorf("package.json of the browser library has another version than %s", Version)
	}
}

// TestTheFileRefersToTheEnvironment: ${NAME} in a text is what NAME is, in lists and sections alike; a lone dollar stays.
func TestTheFileRefersToTheEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leeway.yaml")
	write(t, file, "sites: [{name: demo, hosts: ['${PUBLIC_HOST}:8443'], fetch_base: 'http://${ORIGIN}'}]\nnats: {user: '$${USER}$'}\n")
	out, errs, code := leeway(t, []string{"PUBLIC_HOST=video.test", "ORIGIN=origin.test:81", "USER=a${ORIGIN}"}, "--config", file, "config", "print")
	for _, want := range []string{"video.test:8443", "http://origin.test:81", "$a${ORIGIN}$"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("no %s (%d) in\n%s%s", want, code, out, errs)
		}
	}
}

// TestTheOverlaysConfigurations: what deploy/k8s gives the services is a configuration, once settings and secrets are there.
func TestTheOverlaysConfigurations(t *testing.T) {
	environ := []string{
		"PUBLIC_HOST=192.0.2.1", "NODE_ADDRESS=192.0.2.1", "TRACKER_PORT=30443", "ORIGIN_PORT=30444", "SITE_HOST=video.example.com", "FETCH_BASE=https://origin.example.com",
		"ACCESS=public", "PROXY_RANGE=10.244.0.0/16", "TURN_HOST=turn.example.com", "LEEWAY_TURN_SECRETS=" + strings.Repeat("s", 40),
	}
	for _, overlay := range []string{"dev", "production"} {
		out, errs, code := leeway(t, environ, "config", "check", "../../deploy/k8s/overlays/"+overlay+"/leeway.yaml")
		if code != 0 || !strings.Contains(out, ": ok, 1 site") {
			t.Errorf("%s: %d\n%s%s", overlay, code, out, errs)
		}
	}
}

func FuzzConfig(f *testing.F) {
	files, _ := filepath.Glob("testdata/check/*.yaml")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		config := defaults(func(string) string { return "" })
		if _, err := loadYAML("f.yaml", text, config, Env{}); err == nil {
			check(config, allServices)
		}
	})
}

// TestAServiceTellsAllMistakesAtOnce: of form, of values and of what it would refuse, each with its line; a flag's has none.
func TestAServiceTellsAllMistakesAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leeway.yaml")
	write(t, file, "sites:\n  - name: demo\n    hosts: [video.example.com]\ntracker:\n  max_swarms: 0\n  stats_interval: 0s\n  lisen: x\n")
	_, errs, code := leeway(t, nil, "tracker", "--config", file)
	for _, want := range []string{file + ":5: tracker.max_swarms", file + ":6: tracker.stats_interval", file + `:7: unknown key "tracker.lisen"`} {
		if code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%d, want %q in\n%s", code, want, errs)
		}
	}
	write(t, file, "sites:\n  - name: demo\n    hosts: [video.example.com]\ntracker:\n  max_swarms: 0\n")
	_, errs, code = leeway(t, []string{"LEEWAY_TRACKER_STATS_INTERVAL=0s"}, "tracker", "--config", file, "--admin", "nowhere")
	for _, want := range []string{file + ":2: sites[0].access", file + ":5: tracker.max_swarms", "\ntracker.stats_interval: 0s", `tracker.admin: "nowhere"`} {
		if code != 2 || !strings.Contains("\n"+errs, want) {
			t.Errorf("%d, want %q in\n%s", code, want, errs)
		}
	}
	if out, _, code := leeway(t, nil, "config", "check", "--json", file); code != 2 || !strings.Contains(out, `"line": 5`) {
		t.Errorf("as JSON: %d %s", code, out)
	}
	if out, _, code := leeway(t, nil, "config", "check", "--for", "turn", file); code != 2 || !strings.Contains(out, "turn.secrets") {
		t.Errorf("for a relay: %d %s", code, out)
	}
}

// TestServicesOnOneMachineHaveAdminPortsOfTheirOwn; leeway up, which is all of them, has the tracker's.
func TestServicesOnOneMachineHaveAdminPortsOfTheirOwn(t *testing.T) {
	c := defaults(func(string) string { return "" })
	owner := map[string]string{}
	for service, admin := range map[string]string{"tracker": c.Tracker.Admin, "seed": c.Seed.Admin, "turn": c.Turn.Admin, "probe": c.Probe.Admin, "origin": c.Origin.Admin} {
		if other, taken := owner[admin]; taken {
			t.Errorf("%s and %s both have %s", service, other, admin)
		}
		owner[admin] = service
	}
	if c.Up.Admin != c.Tracker.Admin {
		t.Errorf("leeway up has %s, the tracker %s", c.Up.Admin, c.Tracker.Admin)
	}
}

// TestHelpShowsDefaults: those of keys as the reference has them, and those of flags that have no key.
func TestHelpShowsDefaults(t *testing.T) {
	for command, want := range map[string]string{
		"seed --help":      "(default 127.0.0.1:9465)",
		"turn --help":      "(default 30s)",
		"viewer --help":    "Length of the player's buffer (default 30s).",
		"probe run --help": "(default 1000)",
	} {
		var out bytes.Buffer
		if err := Run(t.Context(), strings.Fields(command), Env{Stdout: &out, Stderr: io.Discard}); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, want) {
			t.Errorf("leeway %s does not say %q: %s", command, want, text)
		}
	}
}
