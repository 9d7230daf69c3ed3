package doctor

import (
	"net/http"
	"testing"
	"time"
)

// TestTheOriginsClockIsOfWhenItAnswered: neither what the doctor waited for since then, nor the time that a cache held the answer, is a
// difference of clocks.
func TestTheOriginsClockIsOfWhenItAnswered(t *testing.T) {
	came := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		dated, waited time.Duration
		age           string
		want          Status
	}{
		"a tracker that did not answer":  {0, 10 * time.Second, "", OK},
		"a copy of an hour":              {-time.Hour, 0, "3600", OK},
		"an hour behind":                 {-time.Hour, 0, "", Fail},
		"an hour behind, and a copy":     {-2 * time.Hour, 0, "3600", Fail},
		"half a minute ahead":            {30 * time.Second, 0, "", Warn},
		"an age that is none":            {0, 0, "-1", OK},
		"another one, and another clock": {-time.Hour, 0, "old", Fail},
	} {
		e := newExamination(Config{Now: func() time.Time { return came.Add(c.waited) }}.complete())
		header := http.Header{"Date": {came.Add(c.dated).Format(http.TimeFormat)}, "Age": {c.age}}
		e.manifest = &manifest{answer: answer{response: &http.Response{Header: header}, came: came}}
		if f := checkClock(t.Context(), e)[0]; f.Status != c.want {
			t.Errorf("%s: %+v", name, f)
		}
		e.close()
	}
}
