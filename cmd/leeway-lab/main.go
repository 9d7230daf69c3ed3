// Command leeway-lab measures Leeway; see `leeway-lab --help`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/leeway-video/leeway/internal/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal does not wait for the cleaning up
	err := lab.Run(ctx, os.Args[1:], lab.Streams{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "leeway-lab:", err)
	}
	os.Exit(lab.ExitCode(err))
}
