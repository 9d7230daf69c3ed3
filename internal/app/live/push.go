// Package live makes the streams of `leeway up --live`: a source pushes its files by HTTP, as a packager does, to what signs them
// before it publishes them (internal/ingest).
package live

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

// Target is where a source pushes its files.
type Target struct {
	Base   string // URL of the folder, ends with a slash
	Client *http.Client
}

func (t Target) put(ctx context.Context, file string, data []byte) error {
	return t.do(ctx, http.MethodPut, file, data)
}

func (t Target) remove(ctx context.Context, file string) error {
	return t.do(ctx, http.MethodDelete, file, nil)
}

func (t Target) do(ctx context.Context, method, file string, data []byte) error {
	request, err := http.NewRequestWithContext(ctx, method, t.Base+file, bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("live: %w", err)
	}
	response, err := t.Client.Do(request)
	if err != nil {
		return fmt.Errorf("live: push %s: %w", file, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if err != nil {
		return fmt.Errorf("live: push %s: %w", file, err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("live: push %s: %s: %s", file, response.Status, bytes.TrimSpace(text))
	}
	return nil
}
