package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/lab/armwire"
)

func TestAddressesAreShownWithoutSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"https://example.com/live/whip": "https://example.com/live/whip", "no address?": "no address?",
		"https://joe:hunter2@example.com:8443/{client}/whip?token=hunter2#x": "https://example.com:8443/{client}/whip?…",
		"https://joe:hunter@2@example.com":                                   "https://example.com",
		`Post "wss://example.com?key=hunter2": refused; see http://a/#b`:     `Post "wss://example.com?…": refused; see http://a/#…`,
	} {
		if got := shown(text); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
}

// TestNoSecretOfAScenarioIsInWhatARunWrites: its result is shown around, and its log, too.
func TestNoSecretOfAScenarioIsInWhatARunWrites(t *testing.T) {
	const secret = "hunter2"
	at := "https://joe:" + secret + "@example.com/live?token=" + secret
	log := &strings.Builder{}
	u := &run{Runner: &Runner{Log: log, Scenario: Scenario{Groups: []Group{{Behavior: WHIP, Endpoint: at, Manifest: at, Tracker: at, Token: secret}}}}, total: NewDelays()}
	g := &group{Group: &u.Scenario.Groups[0], u: u}
	g.complain(&EndpointError{Endpoint: at, Status: "404 Not Found", Text: "no"})
	g.complain(&url.Error{Op: "Post", URL: at, Err: errors.New("refused")})
	u.counts.fail(fmt.Errorf("get %s: %w", at, armwire.Fail(armwire.Limit, "no place")))
	_, err := lookUp(t.Context(), strings.Replace(at, ".com", ".com:99999", 1))
	text, bad := json.Marshal(u.result(newSampler(u), nil, false))
	for what, said := range map[string]string{"log": log.String(), "result": string(text), "error": fmt.Sprint(err)} {
		if said == "" || strings.Contains(said, secret) || !strings.Contains(said, "https://example.com") {
			t.Errorf("%s: %s", what, said)
		}
	}
	if bad != nil {
		t.Error(bad)
	}
}
