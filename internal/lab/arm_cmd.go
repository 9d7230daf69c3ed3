package lab

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"time"

	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/lab/arm"
	"github.com/leeway-video/leeway/internal/sleep"
)

// redial is how long an arm waits before it tries the controller again.
const redial = time.Second

type armCmd struct {
	Controller  string        `arg:"" help:"Address of the controller, ws:// or wss://."`
	Name        string        `help:"Name that the controller shows; by default the host and the process." placeholder:"NAME"`
	Token       string        `help:"Token that the controller asks for." env:"LEEWAY_ARM_TOKEN" placeholder:"TOKEN"`
	Listen      string        `help:"Address of the sessions' UDP sockets (default: the one of this machine from which the controller is reached)." placeholder:"ADDRESS"`
	MaxSessions int           `help:"Sessions that a controller may have." default:"20000" placeholder:"N"`
	MaxSources  int           `help:"Sources that a controller may have." default:"64" placeholder:"N"`
	MaxSockets  int           `help:"UDP sockets of each kind of session. A peer with one address takes that many sessions." default:"128" placeholder:"N"`
	Record      string        `help:"Folder for recordings of received media; without it sessions cannot record." placeholder:"DIR" type:"existingdir"`
	RecordBytes int64         `help:"Bytes of recordings, in all." default:"1073741824" placeholder:"N"`
	Wait        time.Duration `help:"How long the controller may take to be there." default:"30s"`
}

// Help is shown below the usage.
func (armCmd) Help() string {
	return `Dials a controller (leeway-lab load run, or any program that speaks spec/arm-protocol.md) and holds the sessions that it asks for: data
channels, media, or headless viewers. Ends with the controller, or on SIGTERM; no session is left then.

Examples:
  leeway-lab arm ws://127.0.0.1:7600/
  leeway-lab arm --listen 10.0.0.5 --name rack-2 --max-sockets 1000 ws://controller.example.com:7600/
  leeway-lab arm --record /tmp/media ws://127.0.0.1:7600/`
}

// Run serves the controller until it is gone or ctx ends.
func (c *armCmd) Run(ctx context.Context, s *Streams) error {
	at, err := url.Parse(c.Controller)
	if err != nil || at.Host == "" || at.Scheme != "ws" && at.Scheme != "wss" {
		return cmdline.Usage(fmt.Errorf("arm: %q is no ws or wss address of a controller", c.Controller))
	}
	var listen netip.Addr
	if c.Listen != "" {
		if listen, err = netip.ParseAddr(c.Listen); err != nil {
			return cmdline.Usage(fmt.Errorf("arm: --listen %q is no address (give one such as 10.0.0.5)", c.Listen))
		}
	}
	if c.MaxSessions < 1 || c.MaxSources < 1 || c.MaxSockets < 1 || c.RecordBytes < 1 {
		return cmdline.Usage(fmt.Errorf("arm: a bound below 1"))
	}
	if c.Name == "" {
		host, _ := os.Hostname()
		c.Name = armName(host, os.Getpid())
	}
	log := slog.New(slog.NewTextHandler(s.Stderr, nil))
	for began := time.Now(); ; {
		if c.Listen == "" {
			listen = addressFrom(at)
		}
		err := arm.Run(ctx, arm.Config{
			Controller: c.Controller, Name: c.Name, Token: c.Token, Listen: listen, MaxSessions: c.MaxSessions, MaxSources: c.MaxSources,
			MaxSockets: c.MaxSockets, RecordDir: c.Record, RecordBytes: c.RecordBytes, Log: log,
		})
		if err == nil || ctx.Err() != nil || !arm.IsDial(err) || time.Since(began) > c.Wait {
			return err
		}
		log.Info("arm: waiting for the controller", "address", c.Controller)
		if !sleep.For(ctx, redial) {
			return nil
		}
	}
}

// addressFrom is this machine's address from which a controller is reached: peers elsewhere reach no loopback address. It is the default of
// arm.Config where there is none.
func addressFrom(controller *url.URL) netip.Addr {
	port := cmp.Or(controller.Port(), "80") // any, as nothing is sent
	conn, err := net.Dial("udp", net.JoinHostPort(controller.Hostname(), port))
	if err != nil {
		return netip.Addr{} // so will the arm say that dials it
	}
	defer conn.Close()
	if at := conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(); !at.IsLoopback() {
		return at
	}
	return netip.Addr{}
}

// armName makes a name of the characters that the protocol has.
func armName(host string, pid int) string {
	name := []byte(host)
	for i, b := range name {
		if !(b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '.' || b == '-') {
			name[i] = '-'
		}
	}
	return fmt.Sprintf("%s-%d", name[:min(len(name), 50)], pid)
}
