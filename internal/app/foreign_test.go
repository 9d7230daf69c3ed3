package app

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestAServiceNeedsNoSecretOfAnother: one file for all services names a relay's secret in the tracker's section. A seed starts without
// having it, a tracker does not, and what is wrong in the section of another service is its own to tell.
func TestAServiceNeedsNoSecretOfAnother(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leeway.yaml")
	write(t, file, `sites: [{name: demo, hosts: [video.example.com]}]
tracker:
  ice_servers: [{urls: ["turn:turn.example.com"], secret: "${TEST_RELAY_SECRET}"}]
turn: {secrets: [0123456789abcdef0123456789abcdef]}
`)
	for service, wants := range map[string]bool{"tracker": true, "seed": false, "turn": false, "origin": false, "": true} {
		env := Env{service: service}
		config := defaults(env.Getenv)
		_, err := loadFile(file, config, env)
		if err == nil {
			err = (&run{env: env}).valid(config)
		}
		if asked := err != nil && strings.Contains(err.Error(), "TEST_RELAY_SECRET"); asked != wants || !wants && err != nil {
			t.Errorf("%q: %v", service, err)
		}
	}
	// And the commands say which service they are.
	for _, service := range []string{"seed", "turn", "tracker"} {
		_, errs, code := leeway(t, []string{"LEEWAY_CONFIG=" + file, "LEEWAY_TURN_LISTEN=203.0.113.1:1", "LEEWAY_NATS_CA_FILE=/nowhere", "LEEWAY_SEED_ADMIN=127.0.0.1:0", "LEEWAY_TURN_ADMIN=127.0.0.1:0"}, service)
		if code == 0 || strings.Contains(errs, "TEST_RELAY_SECRET") != (service == "tracker") {
			t.Errorf("%s: %d %s", service, code, errs)
		}
	}
}

// TestAskingAServiceNeedsNoneOfItsSecrets: an operator that switches a site on a plain machine has the file, and not the variables that only the
// services have. The token is found all the same.
func TestAskingAServiceNeedsNoneOfItsSecrets(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, tokenFile), strings.Repeat("t", minAdminToken)+"\n")
	file := filepath.Join(dir, "leeway.yaml")
	write(t, file, `sites: [{name: demo, hosts: [video.example.com]}]
nats: {url: "nats://127.0.0.1:4222", user: tracker, password: "${TEST_BUS_PASSWORD}"}
tracker:
  data_dir: `+dir+`
  ice_servers: [{urls: ["turn:turn.example.com"], secret: "${TEST_RELAY_SECRET}"}]
turn: {secrets: ["${TEST_RELAY_SECRET}"]}
`)
	r := &run{env: Env{}, flags: &cli{Config: file}}
	config, err := r.operator()
	if err != nil {
		t.Fatal(err)
	}
	if tokens, err := (adminFlag{}).tokens(config); err != nil || len(tokens) != 1 || tokens[0] != strings.Repeat("t", minAdminToken) {
		t.Errorf("tokens %q, %v", tokens, err)
	}
	write(t, file, "admin: {token: '${TEST_ADMIN_TOKEN}'}\n")
	if _, err := r.operator(); err == nil || !strings.Contains(err.Error(), "TEST_ADMIN_TOKEN") {
		t.Errorf("without the token that the file names: %v", err)
	}
}
