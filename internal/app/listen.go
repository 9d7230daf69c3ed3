package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
)

// nextPorts is how many ports above a busy one are tried.
const nextPorts = 50

// listenTCP opens addr. what names the command and its flag in the error, for an operator that has to choose another port. If the
// port is busy and next is true, it takes the next free one above it.
func listenTCP(ctx context.Context, what, addr string, next bool) (net.Listener, error) {
	var l net.Listener
	err := tryPorts(addr, next, func(addr string) (err error) {
		l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
		return err
	})
	if err != nil {
		return nil, listenError(what, addr, err)
	}
	return l, nil
}

func listenError(what, addr string, err error) error {
	hint := "check the address"
	if op, ok := err.(*net.OpError); ok {
		err = op.Err // without the address once more
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "another process has the port; choose another one"
	case errors.Is(err, syscall.EACCES):
		hint = "a port below 1024 is for root and programs with CAP_NET_BIND_SERVICE; choose another one"
	}
	return fmt.Errorf("%s: listen on %s: %w (%s)", what, addr, err, hint)
}

func tryPorts(addr string, next bool, open func(addr string) error) error {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%w (write HOST:PORT)", err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return fmt.Errorf("port %q is no number from 0 to 65535", portText)
	}
	for tried := 0; ; tried++ {
		err := open(net.JoinHostPort(host, strconv.FormatUint(port, 10)))
		if !errors.Is(err, syscall.EADDRINUSE) || !next || tried == nextPorts || port == 65535 {
			return err
		}
		port++
	}
}

// loopback tells whether addr (HOST:PORT) can be reached from this machine alone.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
