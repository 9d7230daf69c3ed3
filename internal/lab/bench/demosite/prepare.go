package demosite

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
)

// prepare has the film in the cache before the program runs on a host of the lab: no registry can be reached from there. segment is the
// length of its segments; 0 is the usual one.
func prepare(ctx context.Context, leeway string, segment time.Duration, log io.Writer) error {
	args := []string{"film"}
	if segment > 0 {
		args = append(args, "--segment", segment.String())
	}
	said := &bench.Tail{}
	cmd := exec.CommandContext(ctx, leeway, args...)
	cmd.Stderr = said
	if log != nil {
		cmd.Stderr = io.MultiWriter(said, log)
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("prepare the film: %w\n%s", err, said)
	}
	return nil
}
