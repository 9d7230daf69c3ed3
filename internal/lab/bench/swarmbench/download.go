package swarmbench

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/netlab"
	"github.com/leeway-video/leeway/internal/sleep"
)

// mirror is where another program on a viewer's machine downloads from: a server beside the site's that sends without end,
// over the kernel's TCP. A nil one serves no host.
type mirror struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	conns  []net.Conn // guarded by mu
	closed bool       // guarded by mu
}

// mirrorWrite is how much one write hands to the kernel, bytes.
const mirrorWrite = 64 << 10

// openMirror starts one on a host of a lab, if a viewer's machine is to download.
func openMirror(ctx context.Context, host *netlab.Host, plans []Plan) (*mirror, error) {
	wanted := false
	for _, p := range plans {
		wanted = wanted || p.DownloadFor > 0
	}
	if !wanted {
		return nil, nil
	}
	l, err := host.Listen(ctx, "tcp4", netip.AddrPortFrom(host.Addr(), 0).String())
	if err != nil {
		return nil, err
	}
	return serveMirror(l), nil
}

func serveMirror(l net.Listener) *mirror {
	m := &mirror{listener: l}
	m.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if m.keep(c) {
				m.wg.Go(func() { fill(c) })
			}
		}
	})
	return m
}

// keep notes a connection, so that the end of the mirror ends it.
func (m *mirror) keep(c net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		_ = c.Close()
		return false
	}
	m.conns = append(m.conns, c)
	return true
}

// fill sends until the other side has enough.
func fill(c net.Conn) {
	defer c.Close()
	buf := make([]byte, mirrorWrite)
	for {
		if _, err := c.Write(buf); err != nil {
			return
		}
	}
}

func (m *mirror) close() error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	m.closed = true
	for _, c := range m.conns {
		_ = c.Close()
	}
	m.mu.Unlock()
	err := m.listener.Close()
	m.wg.Wait()
	return err
}

// download is the other program: one connection, for as long as the plan has it. It answers how many bytes came.
func (m *mirror) download(ctx context.Context, host *netlab.Host, p Plan) (int64, error) {
	if !sleep.For(ctx, p.DownloadAfter) {
		return 0, nil
	}
	c, err := host.DialContext(ctx, "tcp4", m.listener.Addr().String())
	if err != nil {
		return 0, err
	}
	return drain(ctx, c, p.DownloadFor)
}

// drain takes what comes for so long, or until ctx ends, and closes the connection.
func drain(ctx context.Context, c net.Conn, length time.Duration) (int64, error) {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	defer c.Close()
	var n int64
	err := c.SetReadDeadline(time.Now().Add(length))
	if err == nil {
		n, err = io.Copy(io.Discard, c)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil {
		return n, nil
	}
	return n, errors.Join(errors.New("the download ended before its time"), err)
}

// downloads of the fixed trace: two viewers that have what is ahead, and behind them the one whose machine has more to do.
const (
	downloaderAfter = 30 * time.Second
	downloadAfter   = 15 * time.Second
)

// downloaders plans them. The last watches as long as the others at most, so that what it fetches ahead is there.
func (s scenario) downloaders() []Plan {
	plans := make([]Plan, s.viewers)
	for i := range plans {
		plans[i].Line, plans[i].Arrive = lines[2].Line, time.Duration(i)*2*time.Second
		plans[i].LeaveAfter = downloaderAfter + s.watch
	}
	last := &plans[len(plans)-1]
	last.Line, last.Arrive, last.LeaveAfter, last.Browser = lines[1].Line, downloaderAfter, s.watch, s.browsers > 0
	last.DownloadAfter, last.DownloadFor = downloadAfter, s.download
	return plans
}

// beside is what a viewer keeps whose machine downloads while Leeway fetches ahead.
var beside = map[string]string{
	"download_kept_ratio": ">= 0.95", "downloader_stalls": "<= 0", "downloader_prefetched_bytes": "> 0", "failed_viewers": "<= 0",
}

// declaredDownloads are the figures of a run in which a machine downloads, beside those of every run.
func declaredDownloads(goals map[string]string) (list []bench.Figure) {
	for _, f := range []struct{ name, unit string }{
		{"download_rate", "Mbit/s"}, {"download_rate_without_prefetch", "Mbit/s"}, {"download_rate_origin_only", "Mbit/s"},
		{"download_kept_ratio", ""}, {"download_kept_ratio_vs_origin_only", ""},
		{"downloader_stalls", ""}, {"downloader_stalls_without_prefetch", ""}, {"downloader_stalls_origin_only", ""},
		{"downloader_prefetched_bytes", "bytes"}, {"downloader_promotions", ""}, {"downloader_offload_ratio", ""},
		{"downloader_bitrate", "Mbit/s"}, {"downloader_bitrate_without_prefetch", "Mbit/s"}, {"downloader_bitrate_origin_only", "Mbit/s"},
	} {
		list = append(list, bench.Figure{Name: f.name, Unit: f.unit, Goal: goals[f.name]})
	}
	return list
}

// compareDownloads says what was left of the download's speed, and what the viewer saw. What is compared is the same
// machine, film and download with nothing fetched ahead; that both are viewed over one line is in both.
func compareDownloads(with, origin, without Swarm) map[string]float64 {
	v := map[string]float64{}
	for suffix, s := range map[string]Swarm{"": with, "_origin_only": origin, "_without_prefetch": without} {
		o := s.downloader()
		v["download_rate"+suffix] = float64(o.Downloaded) * 8 / 1e6 / o.Plan.DownloadFor.Seconds()
		v["downloader_stalls"+suffix] = float64(o.Stats.Stalls)
		v["downloader_bitrate"+suffix] = total{o.Stats}.bitrate()
	}
	for name, below := range map[string]float64{
		"download_kept_ratio": v["download_rate_without_prefetch"], "download_kept_ratio_vs_origin_only": v["download_rate_origin_only"],
	} {
		if below > 0 {
			v[name] = v["download_rate"] / below
		}
	}
	st := with.downloader().Stats
	v["downloader_prefetched_bytes"], v["downloader_promotions"] = float64(st.PrefetchedBytes), float64(st.Promotions)
	if all := (total{st}).received(); all > 0 {
		v["downloader_offload_ratio"] = float64(st.Bytes["peer"]) / float64(all)
	}
	return v
}

// downloader is the viewer whose machine downloads.
func (s Swarm) downloader() Outcome {
	for _, o := range s.Outcomes {
		if o.Plan.DownloadFor > 0 {
			return o
		}
	}
	return Outcome{Plan: Plan{DownloadFor: time.Second}}
}
