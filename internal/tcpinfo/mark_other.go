//go:build !unix

package tcpinfo

import (
	"errors"
	"net"
)

// Mark sets the DSCP of what is sent: other systems leave that to their administrators.
func Mark(net.Conn, int) error {
	return errors.New("tcpinfo: this system does not let a program mark packets")
}
