package proc

import (
	"testing"
	"time"
)

func TestProcessors(t *testing.T) {
	const stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 40 50 6 7 8 0 0\ncpu1 1 2 3 400 500 6 7 80 0 0\nintr 1 2 3\n"
	at := time.Unix(100, 0)
	want := Processors{At: at, Idle: 9900 * time.Millisecond, Steal: 880 * time.Millisecond, Count: 2}
	if got, err := parse(stat, at); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "cpu 1 2 3 4 5 6 7 8", "cpu0 1 2 3 x 5 6 7 8"} {
		if got, err := parse(bad, at); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func TestIdleIsAPartOfTheTime(t *testing.T) {
	then := Processors{At: time.Unix(100, 0), Idle: 5 * time.Second, Steal: time.Second, Count: 2}
	now := Processors{At: time.Unix(110, 0), Idle: 20 * time.Second, Steal: 2 * time.Second, Count: 2}
	if idle, steal := now.Since(then); idle != 0.75 || steal != 0.05 {
		t.Errorf("%v idle, %v kept", idle, steal)
	}
	if idle, steal := then.Since(then); idle != 0 || steal != 0 {
		t.Errorf("%v idle, %v kept of no time", idle, steal)
	}
}
