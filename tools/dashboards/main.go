// Command dashboards writes Leeway's Grafana dashboards as JSON.
//
//	go -C tools run ./dashboards ../dashboards
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// boards are all of them; a file is named after its UID, which has a prefix because a Grafana may hold others.
var boards = []board{delivery, cluster, transport}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dashboards FOLDER")
		os.Exit(2)
	}
	for _, b := range boards {
		if err := write(os.Args[1], b); err != nil {
			fmt.Fprintln(os.Stderr, "dashboards:", err)
			os.Exit(1)
		}
	}
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
