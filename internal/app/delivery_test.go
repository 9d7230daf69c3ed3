package app

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/schedule"
	"github.com/leeway-video/leeway/internal/tracker"
)

func someDelivery() []tracker.Delivery {
	return []tracker.Delivery{{
		Site: "demo", Viewers: 5, Resting: 2, Bytes: map[string]int64{"origin": 1_000_000, "peer": 2_500_000, "peer_relay": 500_000}, Reasons: map[string]int64{"urgent": 3, "no-cert": 7},
		Titles: []tracker.TitleDelivery{
			{Label: "0123456789abcdef", Title: "/film/a", Viewers: 4, Bytes: map[string]int64{"peer": 2_500_000}, Rests: true},
			{Label: "other", Viewers: 1, Bytes: map[string]int64{}},
		},
	}}
}

// TestDeliveryAtTheAdminPort: figures are for all that ask by a name of the port, names of titles for those that show the token.
func TestDeliveryAtTheAdminPort(t *testing.T) {
	a, _, _ := adminPort(t)
	a.delivery = someDelivery
	url := serveAdmin(t, a)
	ask := func(host, token string) (int, string) {
		t.Helper()
		r, err := http.NewRequest(http.MethodGet, url+deliveryPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Host = host; token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	for token, names := range map[string]bool{"": false, "wrong": false, testToken: true} {
		status, text := ask("", token)
		var got deliveryAnswer
		if err := json.Unmarshal([]byte(text), &got); err != nil || status != http.StatusOK || got.Names != names || strings.Contains(text, "/film/a") != names {
			t.Fatalf("token %q: %d %s %v", token, status, text, err)
		}
		s := got.Sites[0]
		if s.Viewers != 5 || *s.Offload != 2.5/4 || len(s.Reasons) != len(metric.Reasons) || s.Reasons[0].Segments != 7 || s.Reasons[0].Do == "" {
			t.Errorf("%+v", s)
		}
		if len(s.Titles) != 2 || s.Titles[0].Title != "0123456789abcdef" || s.Titles[1].Title != "other" || s.Titles[1].Offload != nil {
			t.Errorf("%+v", s.Titles)
		}
	}
	if status, text := ask("rebound.example.com", testToken); status != http.StatusMisdirectedRequest || strings.Contains(text, "film") {
		t.Errorf("by a name that a stranger may own: %d %s", status, text)
	}

	out, errs, code := command(t, url, "delivery")
	for _, want := range []string{"/film/a", "62 %", "no-cert (7): A peer has it", "urgent (3)", "3.0", "100 %  rests\n", "site demo: titles at rest: 2."} {
		if !strings.Contains(out, want) {
			t.Errorf("%d %q, and no %q in\n%s", code, errs, want, out)
		}
	}
	if strings.Index(out, "no-cert") > strings.Index(out, "urgent") || strings.Contains(out, "budget") {
		t.Errorf("reasons are not by number:\n%s", out)
	}
	var got deliveryAnswer
	if out, errs, code = command(t, url, "delivery", "--json"); code != 0 || json.Unmarshal([]byte(out), &got) != nil || got.Sites[0].Titles[0].Name != "/film/a" {
		t.Errorf("%d %q %s", code, errs, out)
	}
}

// TestEveryReasonOfTheScheduleIsExplained: what the schedule gives as a reason is counted, and has a row.
func TestEveryReasonOfTheScheduleIsExplained(t *testing.T) {
	var decided []string
	for _, r := range schedule.Reasons {
		decided = append(decided, string(r))
	}
	if !slices.Equal(decided, metric.Reasons) {
		t.Errorf("the schedule decides by %v, counted are %v", decided, metric.Reasons)
	}
}

// TestASeedHasNoDelivery: the command says that it asked no tracker.
func TestASeedHasNoDelivery(t *testing.T) {
	_, _, url := adminPort(t)
	if _, errs, code := command(t, url, "delivery"); code != 1 || !strings.Contains(errs, "no tracker") {
		t.Errorf("%d %q", code, errs)
	}
}
