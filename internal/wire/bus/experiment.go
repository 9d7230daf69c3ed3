package bus

import (
	"errors"
	"fmt"

	"github.com/leeway-video/leeway/internal/experiment"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// Limits of an Experiment.
const (
	MaxExperimentParts = 64
	maxObserved        = 1 << 40 // viewers
)

// Experiment is what a tracker knows of the comparison of a site's viewers with its control group (spec/experiment.md): what each tracker
// has observed, also those that have ended. It is published every ten seconds. Of each tracker a receiver keeps the larger of what
// it had and what it received.
type Experiment struct {
	Site     string           `json:"site"`
	SinceMs  int64            `json:"since_ms"` // when the site was last switched; 0: never. What came before counts for nothing
	Permille int              `json:"permille"` // that are drawn into the control group
	Parts    []ExperimentPart `json:"parts"`
}

// ExperimentPart is what one tracker has observed.
type ExperimentPart struct {
	Tracker signal.ID                                 `json:"tracker"`
	Windows [len(experiment.Windows)]ExperimentWindow `json:"windows"` // in the order of experiment.Windows
}

// ExperimentWindow is what was observed of the viewers that joined in one window.
type ExperimentWindow struct {
	Number int64             `json:"number"` // of windows of that length since the Unix epoch
	Counts experiment.Counts `json:"counts"`
}

// Validate implements Message.
func (m *Experiment) Validate() error {
	if m.Site == "" || len(m.Site) > signal.MaxSite {
		return errors.New("site is missing or too long")
	}
	if m.SinceMs < 0 || m.Permille < 1 || m.Permille > 999 || len(m.Parts) > MaxExperimentParts {
		return fmt.Errorf("since %d, %d permille, %d parts; at most %d parts, and viewers in both groups", m.SinceMs, m.Permille, len(m.Parts), MaxExperimentParts)
	}
	for _, p := range m.Parts {
		if p.Tracker.IsZero() {
			return errNoID
		}
		for _, w := range p.Windows {
			if err := w.validate(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *ExperimentWindow) validate() error {
	if w.Number < 0 {
		return errors.New("a window is before all")
	}
	for _, test := range w.Counts {
		for _, variant := range test {
			for _, n := range variant {
				if n < 0 || n > maxObserved {
					return errors.New("a count is negative or beyond belief")
				}
			}
		}
	}
	return nil
}
