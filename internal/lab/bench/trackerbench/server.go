package trackerbench

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/hosted"
	"github.com/leeway-video/leeway/internal/lab/bench/trackerside"
	"github.com/leeway-video/leeway/internal/webtorrent"
)

const (
	benchToken  = "bench"
	torrentPath = "/announce?token=" + benchToken
	queueBytes  = 64 << 20
)

// service is what a server is told.
type service struct {
	Cert, Key string // files; empty: plaintext
	Limits    bool   // those of `leeway tracker` hold
}

func startServer(_ context.Context, r *bench.Run, pair *hosted.Certificate, secure bool) (*process, error) {
	var s service
	if secure {
		s = service{Cert: pair.Cert, Key: pair.Key}
	}
	out, _, err := startServiceOn(on(serverCore), r, s)
	return out, err
}

// startServiceOn returns the child, too: it answers whatever it is sent with what it has counted.
func startServiceOn(where bench.Command, r *bench.Run, s service) (*process, *bench.Process, error) {
	p, err := r.Start(where, "tracker", "server", "leeway-server")
	if err != nil {
		return nil, nil, err
	}
	out := &process{name: "leeway", pid: p.PID(), stop: p.Stop}
	if err := errors.Join(p.Send(s), p.Receive(&out.address)); err != nil {
		return nil, nil, errors.Join(err, p.Stop())
	}
	return out, p, nil
}

// serverRole is a tracker until its input ends. It answers whatever it is sent with what it has counted.
func serverRole(_ context.Context, in *json.Decoder, out *bench.Writer) error {
	var s service
	if err := in.Decode(&s); err != nil {
		return err
	}
	cfg := trackerside.Config{Cert: s.Cert, Key: s.Key, WebTorrent: webtorrent.Config{Token: benchToken}}
	if !s.Limits {
		const all = trackerside.Unlimited
		cfg.Tracker.MaxPerAddress, cfg.Tracker.MessagesPerSecond, cfg.Tracker.ConnectsPerSecond = all, all, all
		cfg.WriteQueue, cfg.WriteBytes = all, queueBytes
	}
	t, err := trackerside.Start(cfg)
	if err != nil {
		return err
	}
	err = out.Write(t.Address)
	for ask := struct{}{}; err == nil && in.Decode(&ask) == nil; {
		err = out.Write(refusals(t.Registry))
	}
	return errors.Join(err, t.Close())
}
