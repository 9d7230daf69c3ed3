package demopage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFirefoxGetsAProfileOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	if err := writePreferences(dir, map[string]string{"app.update.enabled": "true"}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "user.js"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`user_pref("media.peerconnection.ice.obfuscate_host_addresses", false);`, `user_pref("browser.startup.homepage_override.mstone", "ignore");`,
		`user_pref("app.update.enabled", true);`,
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in\n%s", want, b)
		}
	}
	if err := writePreferences(filepath.Join(dir, "absent"), nil); err == nil {
		t.Error("a profile that there is not is written")
	}
}
