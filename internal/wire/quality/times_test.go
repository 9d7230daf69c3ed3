package quality

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/testkit/spec"
)

// timeRow is a row of the table of spec/probe.md, Times of a stream.
var timeRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([0-9]+) s \\|")

// TestTimesAreTheSpecifications: the table, the vectors, which the page's client reads, too, and the constants say the same.
func TestTimesAreTheSpecifications(t *testing.T) {
	times := map[string]time.Duration{
		"least_late": LeastLate, "most_late": MostLate, "spare": SpareTime, "thin": ThinTime, "patience": Patience, "open": OpenTime, "idle": IdleTime, "late": LateTime,
		"line":    LineTime,
		"silence": 12 * time.Second, // a page's alone
	}
	v := spec.Vectors[struct{ Times map[string]int64 }](t, "quality.json")
	text, err := os.ReadFile("../../../spec/probe.md")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]string{}
	for _, row := range timeRow.FindAllStringSubmatch(string(text), -1) {
		table[row[1]] = row[2] + "s"
	}
	if len(table) != len(times) || len(v.Times) != len(times) {
		t.Errorf("%d rows and %d vectors of %d times", len(table), len(v.Times), len(times))
	}
	for name, want := range times {
		if got, err := time.ParseDuration(table[name]); err != nil || got != want {
			t.Errorf("%s is %v here and %q in the specification", name, want, table[name])
		}
		if got := time.Duration(v.Times[name]) * time.Millisecond; got != want {
			t.Errorf("%s is %v here and %v in the vectors", name, want, got)
		}
	}
}

// TestAClientHearsTheEndOfEachStream: on a line with a round trip of 2 s the server closes a record late, and the client then waits for
// messages. Both together take less time than the client waits in all, and less than the server waits for a further stream.
func TestAClientHearsTheEndOfEachStream(t *testing.T) {
	const trip = 2 * time.Second
	if late := SpareTime + trip + Late(trip); late > Patience {
		t.Errorf("a stream ends after its time and %v, and is given up after %v", late, Patience)
	}
	if trip+ThinTime >= SpareTime {
		t.Error("a stream that is cut short is said to be after the server has closed it")
	}
	if trip+Late(trip) > LateTime {
		t.Error("the server ends a connection whose client waits for late messages")
	}
	if Late(0) != LeastLate || Late(time.Hour) != MostLate || Late(time.Second) != 4*time.Second {
		t.Error("a record is open for four round trips, within its bounds")
	}
}
