package trackerbench

import (
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/loadgen"
)

// child is a role that runs inside the test, on pipes as a process would.
type child struct {
	t   *testing.T
	in  *io.PipeWriter
	say *bench.Writer
	out *json.Decoder
}

func start(t *testing.T, role bench.Role) *child {
	t.Helper()
	toIn, in := io.Pipe()
	fromOut, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := role(context.Background(), json.NewDecoder(toIn), bench.NewWriter(out))
		_ = out.Close()
		ended <- err
	}()
	t.Cleanup(func() {
		_ = in.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &child{t, in, bench.NewWriter(in), json.NewDecoder(fromOut)}
}

func (c *child) ask(question any, answer any) {
	c.t.Helper()
	if err := c.say.Write(question); err != nil {
		c.t.Fatal(err)
	}
	c.hear(answer)
}

func (c *child) hear(answer any) {
	c.t.Helper()
	if err := c.out.Decode(answer); err != nil {
		c.t.Fatal(err)
	}
	if r, ok := answer.(*report); ok && r.Error != "" {
		c.t.Fatal(r.Error)
	}
}

func TestServerAndDriver(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	pair, err := newCertificate()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pair.Remove(); err != nil {
			t.Error(err)
		}
	})
	var address string
	start(t, serverRole).ask(service{Cert: pair.Cert, Key: pair.Key}, &address)
	for protocol, path := range map[loadgen.Protocol]string{loadgen.WebTorrent: torrentPath, loadgen.Native: "/"} {
		driver := start(t, driverRole)
		var r report
		driver.ask(orders{Protocol: protocol, Address: address, Path: path, CA: pair.Cert, Sessions: 12, Swarms: 2, Offers: 2}, &r)
		for _, p := range []phase{{Long: 2 * time.Second, PerSecond: 100}, {Warm: 50 * time.Millisecond, Long: 2 * time.Second}} {
			driver.ask(p, &r)
			if !r.Began {
				t.Errorf("%s, %+v: did not say that it began", protocol, p)
			}
			driver.hear(&r)
			if r.Result.Acks == 0 || r.Result.Answered == 0 {
				t.Errorf("%s, %+v: %+v", protocol, p, r.Result)
			}
		}
	}
}

func TestADriverSaysWhyItCannotBegin(t *testing.T) {
	var r report
	c := start(t, driverRole)
	if err := c.say.Write(orders{Protocol: loadgen.WebTorrent, Address: "127.0.0.1:1", Path: "/", Sessions: 1, Swarms: 1}); err != nil {
		t.Fatal(err)
	}
	if err := c.out.Decode(&r); err != nil || r.Error == "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestBurdensAreToldByTheServer: server and burden as the flood has them, with fewer of each kind.
func TestBurdensAreToldByTheServer(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	var address string
	server := start(t, serverRole)
	server.ask(service{Limits: true}, &address)
	o := orders{Protocol: loadgen.WebTorrent, Address: address, Path: torrentPath, Network: burdenNet, Burdens: []burden{
		{loadgen.Malformed, 2, 200}, {loadgen.Oversized, 2, 20}, {loadgen.Flood, 2, 2000},
	}}
	if err := start(t, burdenRole).say.Write(o); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(30 * time.Second); ; {
		counted := map[string]float64{}
		server.ask(struct{}{}, &counted)
		if counted["bad-message"] > 0 && counted["oversized"] > 0 && counted["rate-limited"] > 0 {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("counted %v", counted)
		}
	}
}
