// Command leeway-lab measures Leeway; see `leeway-lab --help`.
package main

import (
	"os"

	"github.com/leeway-video/leeway/internal/lab"
)

func main() { os.Exit(lab.Main()) }
