package probebench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/leeway-video/leeway/internal/lab/bench"
	"github.com/leeway-video/leeway/internal/netcheck"
	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/qualitylink"
	"github.com/leeway-video/leeway/internal/wire/quality"
)

// roleLine is the client's end of a quality test, in a process on its host.
const roleLine = "line"

// lineSetup begins a role; an empty one, after its first word, has the messages sent.
type lineSetup struct {
	URL  string     `json:"url"`
	Addr netip.Addr `json:"addr"`
}

// lineWord is said when the line is open, and when all is known.
type lineWord struct {
	Error string          `json:"error,omitempty"`
	Up    netstat.Pattern `json:"up"`
	Down  netstat.Pattern `json:"down"`
}

func runLine(ctx context.Context, in *json.Decoder, out *bench.Writer) error {
	var setup lineSetup
	if err := in.Decode(&setup); err != nil {
		return fmt.Errorf("probe line: setup: %w", err)
	}
	word, err := withLine(ctx, setup, func() error {
		if err := out.Write(lineWord{}); err != nil {
			return err
		}
		return in.Decode(&lineSetup{})
	})
	if err != nil {
		word.Error = err.Error()
	}
	return out.Write(word)
}

// withLine opens a line, waits for the word to begin and sends.
func withLine(ctx context.Context, setup lineSetup, begin func() error) (word lineWord, err error) {
	socket, err := qualitylink.Listen(net.JoinHostPort(setup.Addr.String(), "0"))
	if err != nil {
		return word, err
	}
	host, err := qualitylink.NewHost(socket)
	if err != nil {
		return word, errors.Join(err, socket.Close())
	}
	defer host.Close()
	opening, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	line, err := netcheck.Dial(opening, host, setup.Addr, 0, post(setup.URL))
	if err != nil {
		return word, err
	}
	defer line.Close()
	if err := begin(); err != nil {
		return word, err
	}
	results, err := line.Run(ctx, []quality.Run{
		{Stream: 1, Direction: quality.Up, Messages: messages, Interval: interval, Size: netcheck.MessageSize},
		{Stream: 2, Direction: quality.Down, Messages: messages, Interval: interval, Size: netcheck.MessageSize},
	})
	if err != nil {
		return word, err
	}
	return lineWord{Up: results[0].There.Pattern(), Down: results[1].Here.Pattern()}, nil
}

// post posts an offer to the server.
func post(url string) netcheck.Signaler {
	type signal struct {
		Type string `json:"type"`
		SDP  string `json:"sdp"`
	}
	return func(ctx context.Context, offer string) (string, error) {
		body, err := json.Marshal(signal{"offer", offer})
		if err != nil {
			return "", err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/probe/v1/quality", bytes.NewReader(body))
		if err != nil {
			return "", err
		}
		request.Header.Set("Content-Type", "application/json")
		client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
		if err != nil || response.StatusCode != http.StatusOK {
			return "", errors.Join(err, fmt.Errorf("the server answers %s: %s", response.Status, text))
		}
		var answer signal
		err = json.Unmarshal(text, &answer)
		return answer.SDP, err
	}
}
