package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// adminFlag is where commands find a running process.
type adminFlag struct {
	Admin string `help:"Admin address of a tracker, of a seed, or of leeway up." default:"127.0.0.1:9464" placeholder:"HOST:PORT"`
}

// post asks an admin port to do something, and reads what it answers.
func (f adminFlag) post(ctx context.Context, what string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+f.Admin+"/"+what, bytes.NewReader(body))
	if err != nil {
		return &usageError{fmt.Errorf("%s: %q is no address (write HOST:PORT)", what, f.Admin)}
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("%s: ask %s: %w (is Leeway running there? --admin says where)", what, f.Admin, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxPurge))
	if err != nil {
		return fmt.Errorf("%s: read the answer of %s: %w", what, f.Admin, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s refused: %s", what, f.Admin, strings.TrimSpace(string(text)))
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s: read the answer of %s: %w", what, f.Admin, err)
	}
	return nil
}

type purgeCmd struct {
	Site string        `arg:"" optional:"" help:"Site's name."`
	Path string        `arg:"" optional:"" help:"What segments' names begin with; / is the whole site."`
	For  time.Duration `help:"Take it down: nothing below the path is certified or shared again for so long." placeholder:"DURATION"`
	Key  string        `help:"Revoke a seed's signing key instead, for good: 16 hexadecimal digits." placeholder:"ID"`
	adminFlag
}

// Help is shown below the usage.
func (purgeCmd) Help() string {
	return `Viewers drop what they hold below the path at once, in running sessions too, and refuse its certificates. Seeds fetch and
certify it anew when it is asked for; with --for they do not, and the origin alone serves it. A seed whose key is revoked
makes another. What was said cannot be taken back: a path that was taken down for too long stays down.

Examples:
  leeway purge demo /media/bbb/                 # the files there were replaced
  leeway purge demo /media/bbb/ --for 720h      # they are not to be shared for a month
  leeway purge demo / --admin 10.0.0.5:9464
  leeway purge --key 0de41a437d6378b6           # a signing key has leaked`
}

// Run sends the purge to an admin port.
func (c purgeCmd) Run(ctx context.Context, r *run) error {
	if (c.Key == "") == (c.Path == "") || c.Key != "" && c.For != 0 {
		return &usageError{errors.New("purge: name SITE and PATH, or --key ID alone")}
	}
	if c.For < 0 || c.For > 0 && c.For < time.Second {
		return &usageError{fmt.Errorf("purge: --for %s (give a second or more)", c.For)}
	}
	var answer purgeAnswer
	if err := c.post(ctx, "purge", purgeRequest{c.Site, c.Path, c.For.Milliseconds(), c.Key}, &answer); err != nil {
		return err
	}
	var err error
	switch {
	case answer.KeyID != "":
		_, err = fmt.Fprintf(r.env.Stdout, "revoked key %s\n", answer.KeyID)
	case answer.Until > 0:
		_, err = fmt.Fprintf(r.env.Stdout, "purged %s %s, down until %s\n", answer.Site, answer.Prefix, moment(answer.Until))
	default:
		_, err = fmt.Fprintf(r.env.Stdout, "purged %s %s\n", answer.Site, answer.Prefix)
	}
	return err
}

// moment writes ms since the Unix epoch for people.
func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

type switchCmd struct {
	Site  string        `arg:"" help:"Site's name."`
	State string        `arg:"" enum:"on,off" help:"on or off."`
	For   time.Duration `help:"Off for so long, then on again by itself." placeholder:"DURATION"`
	adminFlag
}

// Help is shown below the usage.
func (switchCmd) Help() string {
	return `Off: within seconds every viewer of the site, at every tracker, closes its links and plays from the origin alone; seeds serve
nobody. On lifts whatever switched it off, but for "off: true" of the site in the configuration. Trackers and seeds remember.

Examples:
  leeway switch demo off
  leeway switch demo off --for 2h --admin 10.0.0.5:9464
  leeway switch demo on`
}

// Run sends the switch to an admin port.
func (c switchCmd) Run(ctx context.Context, r *run) error {
	if c.For < 0 || c.For > 0 && (c.State == "on" || c.For < time.Second) {
		return &usageError{fmt.Errorf("switch: --for %s (give a second or more, with off)", c.For)}
	}
	var answer switchAnswer
	if err := c.post(ctx, "switch", switchRequest{c.Site, c.State == "off", c.For.Milliseconds()}, &answer); err != nil {
		return err
	}
	until := ""
	if answer.Until > 0 {
		until = " until " + moment(answer.Until)
	}
	_, err := fmt.Fprintf(r.env.Stdout, "peer delivery of %s is %s%s\n", answer.Site, c.State, until)
	return err
}
