package swarmbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
)

// withRival is a way of playing a trace: pages share by another program, with its defaults, by way of our tracker, which speaks its protocol.
const withRival = "with p2p-media-loader"

// rivalToken is what its pages announce themselves with.
const rivalToken = "bench"

// windowsApart is between two pages that are opened.
const windowsApart = 5 * time.Second

// windows makes a trace one of pages alone, which are opened one after the other: the other program runs in pages alone. Nothing is sought
// for, and none leaves early.
func windows(plans []Plan) {
	for i := range plans {
		plans[i] = Plan{Arrive: windowsApart * time.Duration(i), Line: plans[i].Line, Browser: true}
	}
}

// rivalFile is the other program as a script for a page. make build puts it beside this one.
func rivalFile() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(self), "rival.js"), nil
}

// missingRival says what this machine lacks for pages with the other program.
func missingRival(ctx context.Context) error {
	file, err := rivalFile()
	if err == nil {
		_, err = os.Stat(file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s (make build makes it)", file)
	}
	return errors.Join(err, demopage.Missing(ctx))
}

// rival is what the head of a page gets that plays with the other program.
func (s *stage) rival() (string, error) {
	file, err := rivalFile()
	if err != nil {
		return "", err
	}
	script, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`<script data-announce="/announce?token=%s" data-stun="stun:%s">%s</script>`, rivalToken, s.servers.STUN(), script), nil
}

// asked says how often the origin was asked for segments.
func (s *servers) asked() (requests int64, err error) {
	response, err := s.Client.Get("http://" + s.Public() + "/demo/ledger")
	if err != nil {
		return 0, fmt.Errorf("read the origin's ledger: %w", err)
	}
	defer response.Body.Close()
	var ledger struct {
		Segments map[string]map[string]int64 // path, client, requests
	}
	if response.StatusCode != http.StatusOK {
		return 0, errors.New("read the origin's ledger: " + response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&ledger); err != nil {
		return 0, fmt.Errorf("read the origin's ledger: %w", err)
	}
	for _, clients := range ledger.Segments {
		for _, n := range clients {
			requests += n
		}
	}
	return requests, nil
}

// given is how many different segments players got. What else was asked of the origin no player had any use for, so it does not divide the
// requests: the other program loads most of a film ahead, and a seed what comes after the last viewer.
func (s Swarm) given() int {
	paths := map[string]bool{}
	for _, o := range s.Outcomes {
		for _, path := range o.Given {
			paths[path] = true
		}
	}
	return len(paths)
}

// Goals of pages beside the other program. A film is signed where it is packaged, so each segment should leave the origin once: the rest are
// those with which a page begins before it has a link.
var (
	rivalled = map[string]string{
		"offload_ratio_vs_rival": ">= 1", "origin_requests_per_segment": "<= 1.15", "startup_delay_vs_origin_only": "<= 1.05",
		"stall_ratio_vs_origin_only": "<= 1", "failed_viewers": "<= 0",
	}
	rivalledUnsigned = func() map[string]string {
		goals := maps.Clone(rivalled)
		goals["origin_requests_per_segment"] = "<= 1.3"
		return goals
	}()
	rivalledLive = map[string]string{
		"offload_ratio_vs_rival": ">= 1", "lag_added_seconds": "<= 0.1", "stall_ratio_vs_origin_only": "<= 1",
		"mean_bitrate_vs_origin_only": ">= 0.98", "failed_viewers": "<= 0",
	}
)

// rivalSuffix ends the names of the other program's figures.
const rivalSuffix = "_rival"

// declaredRival are the figures of a run beside the other program, beside those of every run.
func declaredRival(goals map[string]string) (list []bench.Figure) {
	const shares = "offload_ratio_vs_rival" // the other program may share nothing
	list = append(list, bench.Figure{Name: shares, Goal: goals[shares], Optional: true})
	for _, f := range []struct{ name, unit string }{
		{"origin_requests_per_segment", ""}, {"origin_requests_per_segment_rival", ""},
		{"origin_requests_per_segment_origin_only", ""}, {"offload_ratio_rival", ""}, {"viewer_bytes_rival", "bytes"}, {"origin_bytes_rival", "bytes"},
		{"startup_delay_rival", "s"}, {"stalls_rival", ""}, {"stall_ratio_rival", ""}, {"mean_bitrate_rival", "Mbit/s"}, {"failed_viewers_rival", ""},
		{"lag_seconds_rival", "s"}, {"lag_added_seconds_rival", "s"},
	} {
		list = append(list, bench.Figure{Name: f.name, Unit: f.unit, Goal: goals[f.name]})
	}
	return list
}

// compareRival makes the figures of the other program: the same trace with it, with ours and by the origin alone.
func compareRival(with, without, rival Swarm) map[string]float64 {
	theirs := compare(rival, without)
	v := map[string]float64{}
	addMedian(v, "lag_seconds_rival", rival.lags())
	addMedian(v, "lag_added_seconds_rival", lagsAdded(rival, without))
	for _, name := range []string{"offload_ratio", "viewer_bytes", "origin_bytes", "startup_delay", "stalls", "stall_ratio", "mean_bitrate", "failed_viewers"} {
		if value, measured := theirs[name]; measured {
			v[name+rivalSuffix] = value
		}
	}
	for suffix, s := range map[string]Swarm{"": with, "_origin_only": without, rivalSuffix: rival} {
		if n := s.given(); n > 0 {
			v["origin_requests_per_segment"+suffix] = float64(s.Served.Requests) / float64(n)
		}
	}
	if share := theirs["offload_ratio"]; share > 0 {
		v["offload_ratio_vs_rival"] = compare(with, without)["offload_ratio"] / share
	}
	return v
}
