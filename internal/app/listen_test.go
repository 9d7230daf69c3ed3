package app

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestAPortOfRootSaysSo: on such a port the address is right, and what is missing is the right to it.
func TestAPortOfRootSaysSo(t *testing.T) {
	err := listenError("tracker --listen", ":443", &net.OpError{Op: "listen", Net: "tcp", Addr: &net.TCPAddr{Port: 443}, Err: os.NewSyscallError("bind", syscall.EACCES)})
	if want := "tracker --listen: listen on :443: bind: permission denied (a port below 1024 is for root"; !strings.HasPrefix(err.Error(), want) {
		t.Error(err)
	}
}
