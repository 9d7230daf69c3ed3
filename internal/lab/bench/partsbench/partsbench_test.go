package partsbench

import (
	"context"
	"testing"

	"github.com/leeway-video/leeway/internal/lab/bench"
)

// TestACaseMeasuresWhatItNames: each figure has a value, also of the cases that run only when they are named.
func TestACaseMeasuresWhatItNames(t *testing.T) {
	ran := false
	for _, c := range Bench.Cases {
		if c.About == "" {
			t.Errorf("%s says nothing of itself", c.Name)
		}
		if c.Name != "12/2s" {
			continue
		}
		ran = true
		sample, err := c.Run(context.Background(), &bench.Run{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range c.Figures {
			if _, ok := sample.Values[f.Name]; !ok {
				t.Errorf("%s has no %s", c.Name, f.Name)
			}
		}
		if len(sample.Values) != len(c.Figures) {
			t.Errorf("%d values of %d figures", len(sample.Values), len(c.Figures))
		}
	}
	if !ran {
		t.Error("the case has another name")
	}
}
