package bench

import (
	"os"
	"testing"
	"time"
)

func TestWhatTheSystemTellsOfAProcess(t *testing.T) {
	before, err := CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; {
		if after, err := CPU(os.Getpid()); err != nil || after > before {
			break
		}
		if time.Now().After(end) {
			t.Fatal("ten seconds of work took no time of a processor")
		}
	}
	if rss, err := Resident(os.Getpid()); err != nil || rss < 1<<20 {
		t.Errorf("%d bytes resident, %v", rss, err)
	}
	if _, err := CPU(-1); err == nil {
		t.Error("there is no such process")
	}
}
