package trackerbench

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/trackerside"
	"github.com/leeway-video/leeway/internal/lab/loadgen"
	"github.com/leeway-video/leeway/internal/lab/proc"
)

// sourceAddresses is how many addresses of loopback sessions come from.
const sourceAddresses = 64

// orders are what a driver opens.
type orders struct {
	Protocol                        loadgen.Protocol
	Address, Path                   string
	CA                              string // file; empty: plaintext
	First, Sessions, Swarms, Offers int
	Opening                         int      // handshakes under way at a time; 0: as load likes
	Burdens                         []burden // for a driver that is one
	Retries                         int      // of a session that is not let in
	Addresses                       int      // that sessions come from; 0: sourceAddresses
	Network                         byte     // third number of the addresses that sessions come from
}

// phase is what it then does. PerSecond 0 is the closed loop.
type phase struct {
	Warm, Long time.Duration
	PerSecond  int
}

// report is its answer: Error, or what came, and how the sessions began.
type report struct {
	Error   string
	Began   bool  // only: the phase begins to count
	Retried int64 // once all sessions are open
	Result  loadgen.Result
}

// driver is the process that the sessions live in.
type driver struct{ *bench.Process }

// startDriver returns when all sessions are open.
func startDriver(r *bench.Run, o orders) (*driver, error) {
	d, err := sendDriver(r, o)
	if err == nil {
		if _, err = d.receive(); err != nil {
			return nil, errors.Join(err, d.Stop())
		}
	}
	return d, err
}

// sendDriver does not wait for that.
func sendDriver(r *bench.Run, o orders) (*driver, error) {
	return sendFrom(r, on(driverCore), o)
}

func sendFrom(r *bench.Run, where bench.Command, o orders) (*driver, error) {
	p, err := r.Start(where, "tracker", "driver", "driver")
	if err != nil {
		return nil, err
	}
	if err := p.Send(o); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return &driver{p}, nil
}

func (d *driver) receive() (report, error) {
	var r report
	err := d.Receive(&r)
	if err == nil && r.Error != "" {
		err = errors.New(r.Error)
	}
	return r, err
}

// phase runs one, and says what a server had of processors while it counted.
func (d *driver) phase(ctx context.Context, p phase, server int) (loadgen.Result, float64, error) {
	if err := ctx.Err(); err != nil {
		return loadgen.Result{}, 0, err
	}
	if err := d.Send(p); err != nil {
		return loadgen.Result{}, 0, err
	}
	if _, err := d.receive(); err != nil {
		return loadgen.Result{}, 0, err
	}
	before, err := proc.CPU(server)
	if err != nil {
		return loadgen.Result{}, 0, err
	}
	r, err := d.receive()
	if err != nil {
		return loadgen.Result{}, 0, err
	}
	after, err := proc.CPU(server)
	return r.Result, after - before, err
}

// driverRole opens sessions and runs phases until its input ends.
func driverRole(ctx context.Context, in *json.Decoder, out *bench.Writer) error {
	var o orders
	if err := in.Decode(&o); err != nil {
		return err
	}
	d, err := open(ctx, o)
	if err != nil {
		return out.Write(report{Error: err.Error()})
	}
	defer d.Close()
	if err := out.Write(report{Retried: d.Retried()}); err != nil {
		return err
	}
	for {
		var p phase
		if err := in.Decode(&p); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		began := func() { _ = out.Write(report{Began: true}) }
		var r loadgen.Result
		if p.PerSecond > 0 {
			r, err = d.Pace(ctx, p.PerSecond, p.Long, began)
		} else {
			r, err = d.Saturate(ctx, p.Warm, p.Long, began)
		}
		answer := report{Result: r}
		if err != nil {
			answer.Error = err.Error()
		}
		if err := out.Write(answer); err != nil {
			return err
		}
		if err := d.Quiet(ctx); err != nil {
			return err
		}
	}
}

func open(ctx context.Context, o orders) (*loadgen.Driver, error) {
	c, err := o.config()
	if err != nil {
		return nil, err
	}
	return loadgen.Open(ctx, c)
}

func (o *orders) config() (c loadgen.Config, err error) {
	address, err := netip.ParseAddrPort(o.Address)
	if err != nil {
		return c, err
	}
	c = loadgen.Config{
		Protocol: o.Protocol, Address: address, Path: o.Path, Site: trackerside.Site,
		First: o.First, Sessions: o.Sessions, Swarms: o.Swarms, Offers: o.Offers, Opening: o.Opening, Retries: o.Retries,
	}
	for i := range cmp.Or(o.Addresses, sourceAddresses) {
		c.Sources = append(c.Sources, netip.AddrFrom4([4]byte{127, 0, o.Network, byte(2 + i)}))
	}
	if o.CA != "" {
		pem, err := os.ReadFile(o.CA)
		if err != nil {
			return c, err
		}
		c.TLS = &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1"}
		if !c.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return c, fmt.Errorf("%s holds no certificate", o.CA)
		}
	}
	return c, nil
}
