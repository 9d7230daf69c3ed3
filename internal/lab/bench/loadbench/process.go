package loadbench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/leeway-video/leeway/internal/lab/arm"
	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/load"
	"github.com/leeway-video/leeway/internal/lab/proc"
)

// The processes beside the controller, which is the bench itself.
const (
	theArm    = "arm"
	theTested = "tested"
)

// order is what the bench tells a process.
type order struct {
	Controller string `json:"controller,omitempty"` // begin
	Name       string `json:"name,omitempty"`
	Sockets    int    `json:"sockets,omitempty"`
	Processors int    `json:"processors,omitempty"` // that it uses at most; 0: all of the machine
	Settle     bool   `json:"settle,omitempty"`     // give back what is not in use
}

// shrinkings is how many collections a goroutine's stack needs to shrink to what it uses: each halves it. An idle process makes one
// every two minutes.
const shrinkings = 5

// role is the process of an arm.
func role(ctx context.Context, in *json.Decoder, out *bench.Writer) error {
	var o order
	if err := in.Decode(&o); err != nil {
		return err
	}
	runtime.GOMAXPROCS(o.Processors) // 0 changes nothing
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() {
		over <- arm.Run(ctx, arm.Config{Controller: o.Controller, Name: o.Name, MaxSockets: o.Sockets})
	}()
	var err error
	for {
		if err = in.Decode(&o); err != nil {
			break
		}
		for range shrinkings {
			debug.FreeOSMemory()
		}
		if err = out.Write(order{Settle: true}); err != nil {
			break
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	cancel()
	ended := <-over
	if errors.Is(ended, arm.ErrController) {
		ended = nil
	}
	return errors.Join(err, ended)
}

// side is a process and its arm.
type side struct {
	*bench.Process
	*load.Arm
}

// start starts a process and waits for its arm.
func start(ctx context.Context, r *bench.Run, c *load.Controller, name string, sockets int) (side, error) {
	p, err := r.Start(nil, benchName, name, name)
	if err != nil {
		return side{}, err
	}
	if err = p.Send(order{Controller: c.URL(), Name: name, Sockets: sockets}); err == nil {
		var a *load.Arm
		if a, err = c.Next(ctx); err == nil {
			return side{p, a}, nil
		}
	}
	return side{}, errors.Join(err, p.Stop())
}

// settle has the process give back what it does not use, and returns its memory in bytes.
func (s side) settle() (int64, error) {
	if err := s.Send(order{Settle: true}); err != nil {
		return 0, err
	}
	var o order
	if err := s.Process.Receive(&o); err != nil {
		return 0, err
	}
	return proc.Resident(s.Process.PID())
}
