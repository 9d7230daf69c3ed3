package demosite

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
)

// Prepare has the film in the cache before a lab is there: from inside it no registry can be reached. segment is the length of its
// segments; 0 is the usual one.
func Prepare(ctx context.Context, segment time.Duration, log io.Writer) error {
	leeway, err := bench.Leeway()
	if err != nil {
		return err
	}
	args := []string{"film"}
	if segment > 0 {
		args = append(args, "--segment", segment.String())
	}
	cmd := exec.CommandContext(ctx, leeway, args...)
	cmd.Stderr = log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("prepare the film: %w", err)
	}
	return nil
}
