// Command dashboards writes Leeway's Grafana dashboards as JSON.
//
//	go -C tools run ./dashboards ../dashboards
//
// With preview it shows them: it asks a Prometheus every query of every panel, and draws what comes back (make dashboards-preview).
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// boards are all of them; a file is named after its UID, which has a prefix because a Grafana may hold others.
var boards = []board{delivery, cluster, transport}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 && args[0] == "preview" {
		return previewCommand(args[1:])
	}
	if len(args) != 1 {
		return errors.New("usage: dashboards FOLDER, or dashboards preview …")
	}
	for _, b := range boards {
		if err := write(args[0], b); err != nil {
			return err
		}
	}
	return nil
}

func write(folder string, b board) error {
	text, err := b.encode()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, b.file()), text, 0o644)
}

func (b board) file() string { return strings.TrimPrefix(b.uid, "leeway-") + ".json" }

func (b board) encode() ([]byte, error) {
	built, err := b.build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.uid, err)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false) // queries compare with < and >
	if err := e.Encode(built); err != nil {
		return nil, fmt.Errorf("%s: %w", b.uid, err)
	}
	return out.Bytes(), nil
}
