// Package replay decides again what a viewer of either language recorded of its schedule (spec/schedule.md, "Recordings").
package replay

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/leeway-video/leeway/internal/schedule"
)

// Difference is a decision that would be another one now.
type Difference struct {
	Line int // of the recording, from 1
	Want []schedule.Action
	Got  []schedule.Action
}

// Replay decides again what was recorded and returns how many decisions it read and those that differ now.
func Replay(r io.Reader) (n int, differences []Difference, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxRecord+maxRecord/4)
	for lines.Scan() {
		n++
		if len(lines.Bytes()) == 0 {
			n--
			continue
		}
		var rec struct {
			Input   json.RawMessage   `json:"input"`
			Actions []schedule.Action `json:"actions"`
		}
		if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
			return n, differences, fmt.Errorf("recording, line %d: %w", n, err)
		}
		if rec.Input == nil || rec.Actions == nil {
			return n, differences, fmt.Errorf("recording, line %d: input or actions are missing", n)
		}
		in, err := ParseInput(rec.Input)
		if err != nil {
			return n, differences, fmt.Errorf("recording, line %d: %w", n, err)
		}
		if got := schedule.Decide(in); !slices.Equal(got, rec.Actions) {
			differences = append(differences, Difference{n, rec.Actions, got})
		}
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("longer than %d bytes", maxRecord)
		}
		return n, differences, fmt.Errorf("recording, line %d: %w", n+1, err)
	}
	return n, differences, nil
}
