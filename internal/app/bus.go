package app

import (
	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/natsbus"

	"log/slog"
)

// openBus connects to the NATS server of the configuration, or starts one in this process. name is the command, and the inbox of its answers.
func openBus(c NATSConfig, name string, sink metric.Sink, log *slog.Logger) (*natsbus.Bus, error) {
	config := c.bus(name)
	config.Log, config.Metrics = log, sink
	bus, err := natsbus.Open(config)
	if err != nil {
		return nil, err
	}
	if bus.URL() != "" && c.User == "" && !loopback(c.Listen) {
		log.Warn("the embedded NATS server asks for no password: keep nats.listen on a network of your own", "listen", c.Listen)
	}
	return bus, nil
}

// bus is how a service joins it.
func (c NATSConfig) bus(name string) natsbus.Config {
	return natsbus.Config{
		URL: c.URL, Listen: c.Listen, User: c.User, Password: c.Password, CredentialsFile: c.CredentialsFile, NKeyFile: c.NKeyFile,
		CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile, Name: "leeway-" + name, Inbox: name,
	}
}
