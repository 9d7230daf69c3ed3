// Package k8s holds the manifests; its tests read what of them is no Kubernetes.
package k8s

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// secretsOf runs the script that writes an overlay's secrets, and returns the folder.
func secretsOf(t *testing.T) string {
	t.Helper()
	overlay := t.TempDir()
	if out, err := exec.Command("./secrets", overlay).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(overlay, "private")
}

// env reads a file of KEY=value lines.
func env(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok || value == "" {
			t.Fatalf("%s: %q", file, line)
		}
		all[key] = value
	}
	return all
}

// TestSecretsAreWrittenOnce: a service has its own, both ends of a password have the same, and what is there stays.
func TestSecretsAreWrittenOnce(t *testing.T) {
	dir := secretsOf(t)
	read := func() (all map[string]map[string]string) {
		all = map[string]map[string]string{}
		for _, service := range []string{"tracker", "seed", "turn", "nats", "grafana"} {
			all[service] = env(t, filepath.Join(dir, service+".env"))
		}
		return all
	}
	first := read()
	if first["tracker"]["LEEWAY_NATS_PASSWORD"] != first["nats"]["TRACKER_PASSWORD"] || first["seed"]["LEEWAY_NATS_PASSWORD"] != first["nats"]["SEED_PASSWORD"] ||
		first["tracker"]["LEEWAY_TURN_SECRETS"] != first["turn"]["LEEWAY_TURN_SECRETS"] {
		t.Errorf("two ends differ: %v", first)
	}
	values := map[string]bool{}
	for _, of := range first {
		for _, v := range of {
			values[v] = true
		}
	}
	if len(values) != 7 { // tracker, relay, two users, fleet, routes, Grafana
		t.Errorf("%d different secrets in %v", len(values), first)
	}
	certificate, err := os.ReadFile(filepath.Join(dir, "bus.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("./secrets", filepath.Dir(dir)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if again := read(); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("a second run wrote others: %v, then %v", first, again)
	}
	if again, err := os.ReadFile(filepath.Join(dir, "bus.crt")); err != nil || string(again) != string(certificate) {
		t.Errorf("a second run made another certificate: %v", err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
}

// variables are those that nats.yaml gives the server, with the passwords of values.
func variables(t *testing.T, values map[string]string) {
	t.Helper()
	text, err := os.ReadFile("components/nats/nats.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("POD_NAME", "nats-0")
	for _, v := range regexp.MustCompile(`\{name: (NATS_\w+), value: '(.*)'\}`).FindAllStringSubmatch(string(text), -1) {
		t.Setenv(v[1], regexp.MustCompile(`\$\((\w+)\)`).ReplaceAllStringFunc(v[2], func(ref string) string { return values[ref[2:len(ref)-1]] }))
	}
}

// configuration is nats.conf as a server reads it, with the certificates of private.
func configuration(t *testing.T, private string) *server.Options {
	t.Helper()
	text, err := os.ReadFile("components/nats/nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "nats.conf")
	here := strings.NewReplacer("/etc/nats-tls/tls.crt", private+"/bus.crt", "/etc/nats-tls/tls.key", private+"/bus.key", "/etc/nats-tls/ca.crt", private+"/bus-ca.crt")
	if err := os.WriteFile(file, []byte(here.Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return options
}

// TestNATSServersKnowTheirPasswords: the server reads nats.conf with the variables that nats.yaml gives it, whatever a password looks like.
func TestNATSServersKnowTheirPasswords(t *testing.T) {
	private := secretsOf(t)
	for _, password := range []string{"9e5", "0x1f", "-_Ab", "true", "8k"} {
		variables(t, map[string]string{"TRACKER_PASSWORD": password + "t", "SEED_PASSWORD": password, "ROUTES_PASSWORD": password})
		options := configuration(t, private)
		users := map[string]string{}
		for _, u := range options.Users {
			users[u.Username] = u.Password
		}
		if len(users) != 2 || users["tracker"] != password+"t" || users["seed"] != password || options.Cluster.Password != password || options.ServerName != "nats-0" || options.Port != 4222 {
			t.Errorf("%s: %v for clients, %q for servers", password, users, options.Cluster.Password)
		}
		if options.Username != "" || options.Authorization != "" || options.NoAuthUser != "" {
			t.Errorf("and another way in: %q", options.Username)
		}
		if options.TLSConfig == nil || options.AllowNonTLS || options.Cluster.TLSConfig == nil || options.Cluster.TLSConfig.ClientCAs == nil {
			t.Error("clients or routes without TLS")
		}
		if len(options.Routes) != 3 {
			t.Errorf("%s: routes %v", password, options.Routes)
		}
		for _, route := range options.Routes {
			if got, _ := route.User.Password(); got != password || route.User.Username() != options.Cluster.Username {
				t.Errorf("%s: route %v", password, route)
			}
			if err := options.Cluster.TLSConfig.Certificates[0].Leaf.VerifyHostname(route.Hostname()); err != nil {
				t.Errorf("route %v: %v", route, err)
			}
		}
		for _, name := range []string{"nats", "nats.leeway.svc.cluster.local"} {
			if err := options.TLSConfig.Certificates[0].Leaf.VerifyHostname(name); err != nil {
				t.Error(err)
			}
		}
	}
}

// allowed is what spec/cluster.md lets a user say and hear.
type allowed struct{ publish, subscribe []string }

func specified(t *testing.T) map[string]allowed {
	t.Helper()
	text, err := os.ReadFile("../../spec/cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]allowed{}
	subject := regexp.MustCompile("`([^`]+)`")
	names := func(cell string) (out []string) {
		for _, m := range subject.FindAllStringSubmatch(cell, -1) {
			out = append(out, m[1])
		}
		slices.Sort(out)
		return out
	}
	_, section, _ := strings.Cut(string(text), "\n## Users of the bus\n")
	for _, row := range regexp.MustCompile("(?m)^\\| `(tracker|seed)` \\|(.*)\\|(.*)\\|$").FindAllStringSubmatch(section, -1) {
		all[row[1]] = allowed{names(row[2]), names(row[3])}
	}
	if len(all) != 2 || len(all["tracker"].publish) == 0 || len(all["seed"].subscribe) == 0 {
		t.Fatalf("the table is not there: %v", all)
	}
	return all
}

// TestTheServersAllowWhatIsSpecified: nats.conf has the subjects of the table in spec/cluster.md, and trackers alone answer.
func TestTheServersAllowWhatIsSpecified(t *testing.T) {
	variables(t, map[string]string{"TRACKER_PASSWORD": "t", "SEED_PASSWORD": "s", "ROUTES_PASSWORD": "r"})
	want := specified(t)
	for _, u := range configuration(t, secretsOf(t)).Users {
		p := u.Permissions
		publish, subscribe := slices.Clone(p.Publish.Allow), slices.Clone(p.Subscribe.Allow)
		slices.Sort(publish)
		slices.Sort(subscribe)
		if !slices.Equal(publish, want[u.Username].publish) || !slices.Equal(subscribe, want[u.Username].subscribe) {
			t.Errorf("%s publishes %q and hears %q; specified are %q", u.Username, publish, subscribe, want[u.Username])
		}
		if answers := p.Response != nil; answers != (u.Username == "tracker") || answers && (p.Response.MaxMsgs != 1 || p.Response.Expires != time.Minute) {
			t.Errorf("%s answers requests: %+v", u.Username, p.Response)
		}
	}
}

// bus is a running server with the manifests' configuration and secrets.
type bus struct {
	url     string
	private string // the folder of secrets
	log     violations
}

// violations collects what the server refused.
type violations struct {
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (v *violations) Errorf(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); strings.Contains(line, "Violation") {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.lines = append(v.lines, line)
	}
}
func (v *violations) Fatalf(string, ...any)  {}
func (v *violations) Noticef(string, ...any) {}
func (v *violations) Warnf(string, ...any)   {}
func (v *violations) Debugf(string, ...any)  {}
func (v *violations) Tracef(string, ...any)  {}

func (v *violations) seen() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.lines)
}

func startBus(t *testing.T) *bus {
	t.Helper()
	b := &bus{private: secretsOf(t)}
	variables(t, env(t, b.private+"/nats.env"))
	options := configuration(t, b.private)
	options.Host, options.Port, options.HTTPPort, options.NoSigs = "127.0.0.1", server.RANDOM_PORT, 0, true
	options.Cluster.Host, options.Cluster.Port, options.Routes = "127.0.0.1", server.RANDOM_PORT, nil
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.SetLogger(&b.log, false, false)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server is not ready")
	}
	b.url = strings.Replace(s.ClientURL(), "127.0.0.1", "localhost", 1) // a name of the certificate
	b.url = strings.Replace(b.url, "nats://", "tls://", 1)
	return b
}

func (b *bus) password(t *testing.T, user string) string {
	t.Helper()
	return env(t, b.private+"/nats.env")[strings.ToUpper(user)+"_PASSWORD"]
}

func (b *bus) client(t *testing.T, user string) (*nats.Conn, <-chan error) {
	t.Helper()
	refusals := make(chan error, 16)
	c, err := nats.Connect(b.url, nats.UserInfo(user, b.password(t, user)), nats.RootCAs(b.private+"/bus-ca.crt"), nats.CustomInboxPrefix("_INBOX."+user),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refusals <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, refusals
}

// TestAUserIsKeptToItsSubjects on a real server: it refuses a client without a password or in plain text, and refuses each user what
// another one alone may say or hear, the wildcards that would cover it, and the server's own subjects.
func TestAUserIsKeptToItsSubjects(t *testing.T) {
	b := startBus(t)
	plain := strings.Replace(b.url, "tls://", "nats://", 1)
	for what, connect := range map[string]func() (*nats.Conn, error){
		"without a password": func() (*nats.Conn, error) { return nats.Connect(b.url, nats.RootCAs(b.private+"/bus-ca.crt")) },
		"with another's password": func() (*nats.Conn, error) {
			return nats.Connect(b.url, nats.RootCAs(b.private+"/bus-ca.crt"), nats.UserInfo("tracker", b.password(t, "seed")))
		},
		"with the routes' one": func() (*nats.Conn, error) {
			return nats.Connect(b.url, nats.RootCAs(b.private+"/bus-ca.crt"), nats.UserInfo("routes", b.password(t, "routes")))
		},
		"without the authority":    func() (*nats.Conn, error) { return nats.Connect(b.url, nats.UserInfo("seed", b.password(t, "seed"))) },
		"in plain text, by itself": func() (*nats.Conn, error) { return nats.Connect(plain, nats.UserInfo("seed", b.password(t, "seed"))) },
	} {
		if c, err := connect(); err == nil {
			c.Close()
			t.Errorf("connected %s", what)
		}
	}
	spec := specified(t)
	for user, other := range map[string]string{"seed": "tracker", "tracker": "seed"} {
		c, refusals := b.client(t, user)
		refused := func(what string, do func() error) {
			t.Helper()
			if err := do(); err != nil {
				t.Fatal(err)
			}
			if err := c.FlushTimeout(10 * time.Second); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-refusals:
				if !errors.Is(err, nats.ErrPermissionViolation) {
					t.Errorf("%s %s: %v", user, what, err)
				}
			case <-time.After(10 * time.Second):
				t.Errorf("%s %s", user, what)
			}
		}
		ignore := func(*nats.Msg) {}
		one := func(subject string) string { return strings.ReplaceAll(subject, "*", strings.Repeat("0", 32)) }
		for _, subject := range append([]string{"leeway.v1.nothing", "$SYS.REQ.SERVER.PING", "_INBOX." + other + ".x"}, spec[other].publish...) {
			if !slices.Contains(spec[user].publish, subject) {
				refused("publishes "+subject, func() error { return c.Publish(one(subject), nil) })
			}
		}
		hears := append([]string{">", "leeway.>", "leeway.v1.tracker.>", "$SYS.>", "_INBOX.>", "_INBOX." + other + ".>"}, spec[other].subscribe...)
		for _, subject := range hears {
			if !slices.Contains(spec[user].subscribe, subject) {
				refused("hears "+subject, func() error { _, err := c.Subscribe(subject, ignore); return err })
			}
		}
		if user == "seed" { // it answers no request
			tracker, _ := b.client(t, "tracker")
			if _, err := c.Subscribe("leeway.v1.revoke", func(m *nats.Msg) { _ = m.Respond([]byte("x")) }); err != nil {
				t.Fatal(err)
			}
			refused("answers a request", func() error {
				return errors.Join(c.Flush(), tracker.PublishRequest("leeway.v1.revoke", "_INBOX.tracker.x", nil), tracker.Flush())
			})
		}
		// And what it may say and hear is not refused.
		for _, subject := range spec[user].publish {
			if err := c.Publish(one(subject), nil); err != nil {
				t.Error(err)
			}
		}
		for _, subject := range spec[user].subscribe {
			if _, err := c.Subscribe(one(subject), ignore); err != nil {
				t.Error(err)
			}
		}
		if err := c.FlushTimeout(10 * time.Second); err != nil || len(refusals) != 0 {
			t.Errorf("%s is refused what is specified: %v, %d times", user, err, len(refusals))
		}
	}
}
