package app

import (
	"strings"
	"testing"
)

// TestAFleetThatCannotWorkIsNamed: a seed that could not be one of several does not start as one that is alone.
func TestAFleetThatCannotWorkIsNamed(t *testing.T) {
	secret := "LEEWAY_SEED_FLEET_SECRET=" + strings.Repeat("s", 32)
	base := []string{"LEEWAY_SEED_ADMIN=127.0.0.1:0", "LEEWAY_SEED_LISTEN=127.0.0.1:0", "LEEWAY_SEED_DATA_DIR=" + t.TempDir()}
	for want, env := range map[string][]string{
		"seed.fleet.secret":         {"LEEWAY_SEED_FLEET_LISTEN=127.0.0.1:0", "LEEWAY_SEED_FLEET_SECRET=short"},
		"seed.fleet.announce":       {"LEEWAY_SEED_FLEET_LISTEN=:4602", secret},
		`"seed-0.seed"`:             {"LEEWAY_SEED_FLEET_LISTEN=:4602", secret, "LEEWAY_SEED_FLEET_ANNOUNCE=seed-0.seed"},
		"seed.fleet.allow[0]":       {"LEEWAY_SEED_FLEET_LISTEN=127.0.0.1:0", secret, "LEEWAY_SEED_FLEET_ALLOW=10.0.0.1"},
		"seed.fleet.listen":         {"LEEWAY_SEED_FLEET_LISTEN=4602", secret},
		"seed.fleet.warm_up":        {"LEEWAY_SEED_FLEET_LISTEN=127.0.0.1:0", secret, "LEEWAY_SEED_FLEET_WARM_UP=-1"},
		"no site is configured":     {"LEEWAY_SEED_FLEET_LISTEN=127.0.0.1:0", secret},
		"no site is configured for": nil,
	} {
		want = strings.TrimSuffix(want, " for")
		if _, errs, code := leeway(t, append(env, base...), "seed"); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%v: %d %s, want %s", env, code, errs, want)
		}
	}
	if out, _, _ := leeway(t, []string{secret}, "config", "print"); !strings.Contains(out, "fleet:") || strings.Contains(out, "ssssssss") {
		t.Errorf("printed: %s", out)
	}
}
