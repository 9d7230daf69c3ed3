//go:build !linux

package emulator

import (
	"errors"
	"os"
)

// Process exists on Linux only; here it lets the rest compile.
type Process struct{}

var errLinux = errors.New("the emulator runs on Linux only")

func Start(Config, []*os.File) (*Process, error) { return nil, errLinux }
func (p *Process) Stats(bool) (*Stats, error)    { return nil, errLinux }
func (p *Process) Set(link int, cfg Link) error  { return errLinux }
func (p *Process) Ledger(int) ([]bool, error)    { return nil, errLinux }
func (p *Process) Close() error                  { return errLinux }
