// Command leeway runs every service of Leeway; see `leeway --help`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	_ "golang.org/x/crypto/x509roots/fallback" // roots of TLS where the system has none: the image holds this binary alone

	"github.com/leeway-video/leeway/internal/app"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal does not wait for the drain
	err := app.Run(ctx, os.Args[1:], app.Process())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "leeway:", err)
	}
	os.Exit(app.ExitCode(err))
}
