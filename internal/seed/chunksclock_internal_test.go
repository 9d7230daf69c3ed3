package seed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func (d *chunkDesk) logs() *slog.Logger { return slog.New(slog.NewTextHandler(&d.log, nil)) }

// TestAClockThatIsOffIsNamed: an operator that reads of a segment which the origin does not have looks at the origin, and not at the clock.
func TestAClockThatIsOffIsNamed(t *testing.T) {
	for ahead, want := range map[time.Duration]string{0: "", 3 * time.Second: "is 3s or more ahead of the origin's"} {
		onChunks(t, func(d *chunkDesk) {
			d.serves(func(context.Context, int, func([]byte) error) error {
				return &FetchError{Outcome: OutcomeNotFound, Clock: ahead, Cause: errors.New("404 Not Found")}
			})
			d.until(9)
			log := d.log.String()
			if !strings.Contains(log, "404 Not Found") || strings.Contains(log, "clock") != (want != "") || !strings.Contains(log, want) {
				t.Errorf("a clock that is %v ahead: %q", ahead, log)
			}
		})
	}
	if got := fmt.Sprint(hintOfClock(&Fetched{Clock: -3 * time.Second}, errPart)); !strings.Contains(got, "is 3s or more behind the origin's") {
		t.Errorf("a clock that is behind: %s", got)
	}
	refused := &FetchError{Outcome: OutcomeClient, Clock: time.Hour}
	if got := fmt.Sprint(hintOfClock(nil, refused)); !strings.Contains(got, "fetch_auth") {
		t.Errorf("a refusal: %s", got)
	}
}
