package netlab

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// outputWait is how long a killed command's children may keep its output open before Wait returns without them.
const outputWait = 2 * time.Second

// Cmd is an exec.Cmd whose process starts inside a host.
type Cmd struct {
	*exec.Cmd
	host *Host
}

// Command prepares a process inside the host, to be used like any exec.Cmd. The end of ctx kills it with its process
// group, the end of the lab kills whatever is left of its tree.
func (h *Host) Command(ctx context.Context, name string, args ...string) *Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = outputWait
	return &Cmd{cmd, h}
}

// Start is exec.Cmd.Start. The process is forked inside the host: there is no moment in which it is anywhere else, and
// a lab that is killed could miss it.
func (c *Cmd) Start() error { return c.host.Do(c.Cmd.Start) }

// Run is exec.Cmd.Run.
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Output is exec.Cmd.Output; what the process wrote as errors is in an exec.ExitError.
func (c *Cmd) Output() ([]byte, error) {
	var out, errs bytes.Buffer
	c.Stdout = &out
	if c.Stderr == nil {
		c.Stderr = &errs
	}
	err := c.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		exit.Stderr = errs.Bytes()
	}
	return out.Bytes(), err
}

// CombinedOutput is exec.Cmd.CombinedOutput.
func (c *Cmd) CombinedOutput() ([]byte, error) {
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.Bytes(), err
}
