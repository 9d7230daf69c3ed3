package demopage

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// firefoxPreferences are a user's defaults but for what would go to the world, ask at the first start, or hide this machine's
// addresses behind names that no host of a lab answers for. Values as Firefox writes them.
var firefoxPreferences = map[string]string{
	"app.normandy.enabled":                              "false",
	"app.update.enabled":                                "false",
	"browser.aboutwelcome.enabled":                      "false",
	"browser.newtabpage.enabled":                        "false",
	"browser.safebrowsing.malware.enabled":              "false",
	"browser.safebrowsing.phishing.enabled":             "false",
	"browser.shell.checkDefaultBrowser":                 "false",
	"browser.startup.homepage_override.mstone":          `"ignore"`,
	"datareporting.healthreport.uploadEnabled":          "false",
	"datareporting.policy.dataSubmissionEnabled":        "false",
	"extensions.getAddons.cache.enabled":                "false",
	"extensions.update.enabled":                         "false",
	"media.gmp-manager.url":                             `""`,
	"media.peerconnection.ice.loopback":                 "true",
	"media.peerconnection.ice.obfuscate_host_addresses": "false",
	"network.captive-portal-service.enabled":            "false",
	"network.connectivity-service.enabled":              "false",
	"services.settings.server":                          `"data:,"`,
	"toolkit.telemetry.reportingpolicy.firstRun":        "false",
}

// writePreferences makes the profile one that has them; other has those that are different.
func writePreferences(profile string, other map[string]string) error {
	all := maps.Clone(firefoxPreferences)
	maps.Copy(all, other)
	var b strings.Builder
	for name, value := range all {
		fmt.Fprintf(&b, "user_pref(%q, %s);\n", name, value)
	}
	return os.WriteFile(filepath.Join(profile, "user.js"), []byte(b.String()), 0o600)
}

// MissingFirefoxEnd is MissingEnd for an end in Firefox.
func MissingFirefoxEnd(ctx context.Context) error {
	if len(Script()) == 0 {
		return errNotBuilt
	}
	return MissingFirefox(ctx)
}

// MissingFirefox says what keeps this machine from running a Firefox.
func MissingFirefox(context.Context) error {
	if _, err := exec.LookPath(firefox()); err != nil {
		return fmt.Errorf("no Firefox: %w (install it, or name it in LEEWAY_FIREFOX)", err)
	}
	return nil
}

// firefox is the Firefox that the machine has.
func firefox() string {
	if named := os.Getenv("LEEWAY_FIREFOX"); named != "" {
		return named
	}
	return "firefox-esr"
}
