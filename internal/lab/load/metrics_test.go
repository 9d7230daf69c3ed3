package load

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leeway-video/leeway/internal/promreg"
)

func TestASampleIsCounted(t *testing.T) {
	registry, err := promreg.New(nil, Metrics()...)
	if err != nil {
		t.Fatal(err)
	}
	Sample{Up: 7, Opened: 9, Failed: 1, Lost: 1, Arms: 2, ArmCPU: 0.5, PeerCPU: 0.75, ArmRSS: 1 << 20, PeerRSS: 1 << 21, Received: 1e6, Join: 0.25, Spoiled: []string{"x"}}.Count(registry)
	Sample{Up: 8, Opened: 10, Failed: 1, Lost: 1, Arms: 1, Received: 2e6, NACKs: 3}.Count(registry)
	w := httptest.NewRecorder()
	registry.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text, _ := io.ReadAll(w.Result().Body)
	for _, want := range []string{
		`leeway_load_clients{state="connected"} 8`, `leeway_load_clients{state="opened"} 10`, "leeway_load_arms 1", `leeway_load_processors{side="peer"} 0`,
		"leeway_load_received_bits_per_second 2e+06", "leeway_load_nacks 3", "leeway_load_spoiled_seconds_total 1", "leeway_load_join_p99_seconds 0",
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
