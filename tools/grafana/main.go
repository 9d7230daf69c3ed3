// Command grafana answers queries as a Grafana with one provisioned Prometheus data source does: by Grafana's own backend for
// Prometheus, at Grafana's own paths. It runs a command, which finds it at $GRAFANA_URL, and ends with it.
//
//	grafana -prometheus http://127.0.0.1:9090 [-scrape 5s] -provisioned datasources.yaml COMMAND…
//
// It is a module of its own since that backend wants other versions than tools has, and much that nothing else here needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
			os.Exit(exit.ExitCode()) // it has said why
		}
		fmt.Fprintln(os.Stderr, "grafana:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("grafana", flag.ContinueOnError)
	prometheus := flags.String("prometheus", "", "`URL` of the Prometheus, instead of the provisioned one")
	scrape := flags.String("scrape", "", "its scrape `interval`, instead of the provisioned one")
	file := flags.String("provisioned", "", "`file` that Grafana is provisioned with")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *file == "" || flags.NArg() == 0 {
		return errors.New("usage: grafana -provisioned FILE [-prometheus URL] [-scrape INTERVAL] COMMAND…")
	}
	source, err := provisioned(*file)
	if err != nil {
		return err
	}
	if *prometheus != "" {
		source.URL = *prometheus
	}
	if *scrape != "" {
		source.JSON["timeInterval"] = *scrape
	}
	handler, err := newBackend(source)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return during(ctx, handler, flags.Args())
}

// during serves on loopback while a command runs.
func during(ctx context.Context, handler http.Handler, command []string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.Env = append(os.Environ(), "GRAFANA_URL=http://"+listener.Addr().String())
	err = c.Run()
	_ = server.Close()
	<-ended
	return err
}
