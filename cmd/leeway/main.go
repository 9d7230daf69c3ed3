// Command leeway runs every service of Leeway; see `leeway --help`.
package main

import (
	"os"

	_ "golang.org/x/crypto/x509roots/fallback" // roots of TLS where the system has none: the image holds this binary alone

	"github.com/leeway-video/leeway/internal/app"
)

func main() { os.Exit(app.Main()) }
