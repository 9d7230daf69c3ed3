package demosite

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
)

// Scraped lets a Prometheus outside the lab read the admin port: it makes a listener on loopback that passes requests for
// /metrics on, and writes a file for file_sd_configs that names it. close ends both.
func (s *Site) Scraped(file string) (closeIt func() error, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		response, err := s.Client.Get("http://" + s.Admin() + "/metrics")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = response.Body.Close() }()
		w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
		_, _ = io.Copy(w, response.Body)
	})
	server := &http.Server{Handler: mux}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	targets, err := json.Marshal([]map[string]any{{
		"targets": []string{listener.Addr().String()}, "labels": map[string]string{"service": "up", "instance": "up-0"},
	}})
	if err == nil {
		err = os.WriteFile(file, targets, 0o644)
	}
	closeIt = func() error {
		err := server.Shutdown(context.Background())
		if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
		return err
	}
	if err != nil {
		return nil, errors.Join(err, closeIt())
	}
	return closeIt, nil
}
