package trackerbench

import (
	"context"
	"net/netip"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/hosted"
)

// process is a tracker that is measured.
type process struct {
	name    string
	address string // HOST:PORT
	pid     int
	stop    func() error
}

// starter starts a tracker on its core.
type starter func(ctx context.Context, r *bench.Run, pair *hosted.Certificate, secure bool) (*process, error)

// newCertificate is one for 127.0.0.1.
func newCertificate() (*hosted.Certificate, error) {
	return hosted.NewCertificate(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
}
