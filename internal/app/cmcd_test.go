package app

import (
	"net/http"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/testkit"
)

// TestReportsOfPlayersAreCounted: reports reach the collector through the port of a tracker, for the sites that ask for it.
func TestReportsOfPlayersAreCounted(t *testing.T) {
	file := t.TempDir() + "/site.yaml"
	write(t, file, "name: film\nhosts: [\"localhost:9002\"]\npage_origins: [\"https://www.example.com\"]\ncmcd: true\n")
	r := startUp(t, "--site="+file)
	post := func(at, body string) int {
		request, err := http.NewRequest(http.MethodPost, at+"/cmcd", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Origin", "https://www.example.com")
		request.Header.Set("Content-Type", "application/cmcd")
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	if code := post(r.page, "e=ps,sid=\"one\",sta=r,ts=1790000000000,v=2\n"); code != http.StatusNoContent {
		t.Fatalf("a report: %d\n%s", code, r.errs)
	}
	_, metrics := fetch(t, "GET", r.admin+"/metrics")
	for _, want := range []string{`leeway_cmcd_events_total{event="ps",site="film"} 1`, `leeway_cmcd_states_total{site="film",state="rebuffering"} 1`} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("%s is not there", want)
		}
	}
	if said := metrics + r.errs.String(); strings.Contains(said, "1790000000000") || strings.Contains(said, `"one"`) {
		t.Error("more of a report is kept than what is counted")
	}
	without := startUp(t, "--media="+testkit.TinyFilm(t))
	if code := post(without.page, "e=ps,sta=r,ts=1,v=2\n"); code != http.StatusNotFound {
		t.Errorf("where no site asks for reports: %d", code)
	}
	if _, metrics := fetch(t, "GET", without.admin+"/metrics"); strings.Contains(metrics, "leeway_cmcd_") {
		t.Error("there are figures of reports that no site takes")
	}
}
