// Package host holds what runs Leeway on plain machines; its tests have the real programs judge it.
package host

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/leeway-video/leeway/internal/app"
)

const secret = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"

func text(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// tool runs a program on copies of the files, or skips where the machine has no such program.
func tool(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || name == "systemd-analyze" && len(out) > 0 { // which only warns of a key that it does not know
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// TestTheServicesWouldStart: config check refuses all that they would refuse.
func TestTheServicesWouldStart(t *testing.T) {
	var out bytes.Buffer
	env := app.Env{Stdout: &out, Stderr: &out, Environ: []string{"LEEWAY_RELAY_SECRET=" + secret, "HOME=" + t.TempDir()}}
	if err := app.Run(context.Background(), []string{"config", "check", "leeway.yaml", "--for", "tracker,seed,turn"}, env); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	var config map[string]struct{ Listen, Admin string }
	all := map[string]any{}
	if err := yaml.Unmarshal([]byte(text(t, "leeway.yaml")), &all); err != nil {
		t.Fatal(err)
	}
	delete(all, "sites")
	b, _ := yaml.Marshal(all)
	if err := yaml.Unmarshal(b, &config); err != nil {
		t.Fatal(err)
	}
	taken := map[string]string{}
	for service, c := range config {
		for _, address := range []string{c.Listen, c.Admin} {
			_, port, _ := net.SplitHostPort(address)
			if other := taken[port]; port != "" && other != "" {
				t.Errorf("%s and %s both want port %s", service, other, port)
			}
			taken[port] = service
		}
	}
}

func TestUnitsAreValid(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"leeway@.service", "leeway-nats.service"} {
		unit := regexp.MustCompile(`(?m)^ExecStart=\S+`).ReplaceAllString(text(t, name), "ExecStart=/bin/true")
		unit = strings.ReplaceAll(unit, "User=leeway\n", "User=root\n") // that user is made with the folders, docs/operations/host.md
		if err := os.WriteFile(filepath.Join(dir, strings.Replace(name, "@", "@tracker", 1)), []byte(unit), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tool(t, dir, "systemd-analyze", "verify", "--man=no", "./leeway@tracker.service", "./leeway-nats.service")
}

// TestHaproxyTakesTheSnippet where there is an HAProxy.
func TestHaproxyTakesTheSnippet(t *testing.T) {
	dir := t.TempDir()
	config := "defaults\n  timeout connect 5s\n" + regexp.MustCompile(` ssl crt \S+`).ReplaceAllString(text(t, "haproxy.cfg"), "")
	if err := os.WriteFile(filepath.Join(dir, "haproxy.cfg"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	tool(t, dir, "haproxy", "-c", "-f", "haproxy.cfg")
}

// TestCaddyTakesTheSnippet where there is a Caddy.
func TestCaddyTakesTheSnippet(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	tool(t, dir, "caddy", "adapt", "--config", "Caddyfile", "--adapter", "caddyfile")
}

func TestPrometheusScrapesEachService(t *testing.T) {
	dir := t.TempDir()
	for to, from := range map[string]string{"prometheus.yml": "prometheus.yml", "leeway.yml": "../../alerts/leeway.yml"} {
		if err := os.WriteFile(filepath.Join(dir, to), []byte(text(t, from)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	services := text(t, "leeway.yaml")
	var found []string
	for _, m := range regexp.MustCompile(`targets: \['127\.0\.0\.1:(\d+)'\]\s+labels: \{service: (\w+)\}`).FindAllStringSubmatch(text(t, "prometheus.yml"), -1) {
		found = append(found, m[2])
		if !regexp.MustCompile(`(?s)\n` + m[2] + `:\n(  [^\n]*\n)*?  admin: 127\.0\.0\.1:` + m[1]).MatchString(services) {
			t.Errorf("%s has no admin port %s in leeway.yaml", m[2], m[1])
		}
	}
	if !slices.Equal(found, []string{"tracker", "seed", "turn"}) {
		t.Errorf("scrapes %v", found)
	}
	// What is commented out for leeway up becomes a configuration without its first two characters.
	up := regexp.MustCompile(`(?m)^      # (- targets: \['127\.0\.0\.1:9464'\]|  labels: \{service: up\})$`)
	if n := len(up.FindAllString(text(t, "prometheus.yml"), -1)); n != 2 {
		t.Errorf("%d lines for leeway up", n)
	}
	if err := os.WriteFile(filepath.Join(dir, "up.yml"), up.ReplaceAll([]byte(text(t, "prometheus.yml")), []byte("      $1")), 0o600); err != nil {
		t.Fatal(err)
	}
	tool(t, dir, "promtool", "check", "config", "prometheus.yml")
	tool(t, dir, "promtool", "check", "config", "up.yml")
}

// TestUsersOfTheBusAreThoseOfTheCluster: one list of what services may say, in two places.
func TestUsersOfTheBusAreThoseOfTheCluster(t *testing.T) {
	users := regexp.MustCompile(`(?s)# What each user may say.*?\n\}\n`)
	here, there := users.FindString(text(t, "nats.conf")), users.FindString(text(t, "../k8s/components/nats/nats.conf"))
	if here == "" || here != there {
		t.Errorf("here:\n%s\nthere:\n%s", here, there)
	}
	t.Setenv("NATS_TRACKER_PASSWORD", secret)
	t.Setenv("NATS_SEED_PASSWORD", secret+"2")
	options, err := server.ProcessConfigFile("nats.conf")
	if err != nil || options.Host != "127.0.0.1" || len(options.Users) != 2 {
		t.Errorf("%+v, %v", options, err)
	}
}

// TestAnySecretIsAPasswordOfTheBus: nats.conf reads a variable as it reads a value without quotes.
func TestAnySecretIsAPasswordOfTheBus(t *testing.T) {
	t.Setenv("NATS_SEED_PASSWORD", secret)
	for range 300 {
		var out bytes.Buffer
		if err := app.Run(t.Context(), []string{"secret"}, app.Env{Stdout: &out, Stderr: &out}); err != nil {
			t.Fatal(err)
		}
		made := strings.TrimSpace(out.String())
		t.Setenv("NATS_TRACKER_PASSWORD", made)
		options, err := server.ProcessConfigFile("nats.conf")
		if err != nil || !slices.ContainsFunc(options.Users, func(u *server.User) bool { return u.Password == made }) {
			t.Fatalf("%s: %v", made, err)
		}
	}
}

// TestComposeRunsTheServices: each container is a service of the file, with the files of this folder.
func TestComposeRunsTheServices(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Command []string
			Volumes []string
			EnvFile []string `yaml:"env_file"`
		}
	}
	if err := yaml.Unmarshal([]byte(text(t, "compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	made := text(t, "../../docs/operations/host.md")
	for _, name := range []string{"nats", "tracker", "seed", "turn"} {
		c := compose.Services[name]
		if len(c.Command) == 0 || name != "nats" && c.Command[0] != name {
			t.Errorf("%s runs %v", name, c.Command)
		}
		for _, v := range c.EnvFile {
			if !strings.Contains(made, ">"+v+"\n") {
				t.Errorf("%s reads %s, which the document does not make", name, v)
			}
		}
		// A file by itself stays what it was when an editor has put another in its place, and its neighbors are not there.
		if name != "nats" && !slices.Contains(c.Volumes, "/etc/leeway:/etc/leeway:ro") {
			t.Errorf("%s does not see the folder of its configuration: %v", name, c.Volumes)
		}
		for _, v := range c.Volumes {
			if from, _, _ := strings.Cut(v, ":"); strings.HasPrefix(from, "/etc/leeway/") {
				text(t, filepath.Base(from))
			}
		}
	}
}

// TestDockerComposeTakesTheFile: also the one of Debian 12, which refuses what it does not know.
func TestDockerComposeTakesTheFile(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"relay", "nats", "tracker", "seed"} {
		if err := os.WriteFile(filepath.Join(dir, name+".env"), []byte("A=b\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := strings.ReplaceAll(text(t, "compose.yaml"), "/etc/leeway/", dir+"/")
	if err := os.WriteFile(filepath.Join(dir, "compose.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	tool(t, dir, "docker-compose", "--project-name", "leeway", "--file", "compose.yaml", "config", "--quiet")
}
