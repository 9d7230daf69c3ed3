//go:build !linux

package namespace

import "errors"

// Namespace exists on Linux only; here it lets the rest compile.
type Namespace struct{}

// ErrLinux is what everything returns.
var ErrLinux = errors.New("network namespaces are there on Linux only")

func (n *Namespace) Path() string          { return "" }
func (n *Namespace) Do(func() error) error { return ErrLinux }
func (n *Namespace) Close() error          { return ErrLinux }
func (n *Namespace) Release()              {}

// Owner exists on Linux only.
type Owner struct{}

func Own(string) (*Owner, error)       { return nil, ErrLinux }
func (o *Owner) Space(s string) string { return s }
func (o *Owner) Close() error          { return ErrLinux }

func Sweep(string) error { return ErrLinux }
