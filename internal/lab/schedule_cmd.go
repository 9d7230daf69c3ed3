package lab

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/lab/replay"
)

type scheduleCmd struct {
	Replay replayCmd `cmd:"" help:"Replay a recording and print every decision that would be another one now."`
}

type replayCmd struct {
	File string `arg:"" help:"Recording, one JSON object a line; - is standard input." placeholder:"FILE"`
}

// Help is shown below the usage.
func (replayCmd) Help() string {
	return `A recording comes from leeway viewer --record, or from the browser library's recorder. Exit code 1 means differences.

Examples:
  leeway-lab schedule replay run.jsonl
  leeway-lab schedule replay - < run.jsonl`
}

// Run replays one file.
func (c replayCmd) Run(s *Streams) error {
	in := s.Stdin
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return cmdline.Usage(fmt.Errorf("schedule replay: %w", err))
		}
		defer f.Close()
		in = f
	}
	n, differences, err := replay.Replay(in)
	if err != nil {
		return fmt.Errorf("schedule replay %s: %w", c.File, err)
	}
	for _, d := range differences {
		want, err := json.Marshal(d.Want)
		if err != nil {
			return fmt.Errorf("schedule replay %s: %w", c.File, err)
		}
		got, err := json.Marshal(d.Got)
		if err != nil {
			return fmt.Errorf("schedule replay %s: %w", c.File, err)
		}
		fmt.Fprintf(s.Stdout, "line %d\n  recorded %s\n  now      %s\n", d.Line, want, got)
	}
	fmt.Fprintf(s.Stdout, "%d decisions, %d differ\n", n, len(differences))
	if len(differences) > 0 {
		return fmt.Errorf("schedule replay %s: %d of %d decisions differ", c.File, len(differences), n)
	}
	return nil
}
