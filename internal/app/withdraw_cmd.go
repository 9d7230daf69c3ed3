package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/cmdline"
)

// adminFlag is where commands find a running process.
type adminFlag struct {
	Admin          string `help:"Admin address of a tracker, or of leeway up." default:"127.0.0.1:9464" placeholder:"HOST:PORT"`
	AdminTokenFile string `help:"File with the token of that process; by default the configured one (LEEWAY_ADMIN_TOKEN), or those in the data folders of this machine." placeholder:"FILE" type:"path"`
}

// maxAnswer bounds what is read of an admin port's answer, in bytes.
const maxAnswer = 16 << 20

// maxTokenFile bounds what is read of a file with a token, in bytes.
const maxTokenFile = 4 << 10

// tokens are those that may be the process's: the one that is named, else the one that is configured, else those that
// services keep in their data folders on this machine. There is always one, perhaps empty.
func (f adminFlag) tokens(c *Config) ([]string, error) {
	named := f.AdminTokenFile
	if named == "" && c.Admin.Token != "" {
		return []string{c.Admin.Token}, nil
	}
	if named == "" {
		named = c.Admin.TokenFile
	}
	if named != "" {
		token, err := readToken(named)
		if err != nil {
			return nil, cmdline.Usage(fmt.Errorf("admin token: %w (it is made when the service first starts, for its own user)", err))
		}
		return []string{token}, nil
	}
	var found []string
	for _, dir := range []string{c.Up.DataDir, c.Tracker.DataDir, c.Seed.DataDir} {
		if token, err := readToken(filepath.Join(dir, tokenFile)); err == nil {
			found = append(found, token)
		}
	}
	if found == nil {
		found = []string{""}
	}
	return found, nil
}

func readToken(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxTokenFile))
	return strings.TrimSpace(string(text)), err
}

// operator is the configuration as far as a command needs it that asks a service: services' secrets may be missing. A file of the
// environment may refer to more that the service alone is told; then it says nothing.
func (r *run) operator() (*Config, error) {
	r.env.service = asker
	config := defaults(r.env.Getenv)
	if file := r.file(); file != "" {
		if _, err := loadFile(file, config, r.env); err != nil {
			if r.flags.Config != "" {
				return nil, cmdline.Usage(err)
			}
			config = defaults(r.env.Getenv)
		}
	}
	if _, err := loadEnviron(r.env.Environ, config); err != nil {
		return nil, cmdline.Usage(err)
	}
	return config, nil
}

// post asks an admin port to do something, and reads what it answers.
func (f adminFlag) post(ctx context.Context, r *run, what string, request, answer any) error {
	config, err := r.operator()
	if err != nil {
		return err
	}
	tokens, err := f.tokens(config)
	if err != nil {
		return err
	}
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for i, token := range tokens {
		status, text, err := f.ask(ctx, http.MethodPost, what, token, body)
		switch {
		case err != nil:
			return err
		case status == http.StatusUnauthorized && i < len(tokens)-1:
			continue
		case status != http.StatusOK:
			return fmt.Errorf("%s: %s refused: %s", what, f.Admin, strings.TrimSpace(string(text)))
		}
		if err := json.Unmarshal(text, answer); err != nil {
			return fmt.Errorf("%s: read the answer of %s: %w", what, f.Admin, err)
		}
		return nil
	}
	return nil
}

// ask asks once, with a token.
func (f adminFlag) ask(ctx context.Context, method, what, token string, body []byte) (status int, text []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+f.Admin+"/"+what, bytes.NewReader(body))
	if err != nil {
		return 0, nil, cmdline.Usage(fmt.Errorf("%s: %q is no address (write HOST:PORT)", what, f.Admin))
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: ask %s: %w (is Leeway running there? --admin says where)", what, f.Admin, err)
	}
	defer response.Body.Close()
	if text, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer)); err != nil {
		return 0, nil, fmt.Errorf("%s: read the answer of %s: %w", what, f.Admin, err)
	}
	return response.StatusCode, text, nil
}

type purgeCmd struct {
	Site string        `arg:"" optional:"" help:"Site's name."`
	Path string        `arg:"" optional:"" help:"Prefix of segment names; / is the whole site."`
	For  time.Duration `help:"Take it down: nothing below the path is certified or shared again for this time, 31 days at most." placeholder:"DURATION"`
	Key  string        `help:"Revoke a signing key of a seed or a packager instead, permanently: 16 hexadecimal digits." placeholder:"ID"`
	adminFlag
}

// Help is shown below the usage.
func (purgeCmd) Help() string {
	return `Viewers drop what they hold below the path at once, in running sessions too, and refuse its certificates. Seeds fetch and
certify it again on demand; what a packager has signed it has to sign again (leeway certify --again). With --for neither counts, and
only the origin serves it. A seed whose key is revoked makes another; a packager needs one from you. A purge cannot be undone: a
path that was taken down for too long stays down.

Examples:
  leeway purge demo /media/bbb/                 # the files there were replaced
  leeway purge demo /media/bbb/ --for 720h      # they must not be shared for a month
  leeway purge demo / --admin 10.0.0.5:9464 --admin-token-file token
  leeway purge --key 0de41a437d6378b6           # a signing key has leaked`
}

// Run sends the purge to an admin port.
func (c purgeCmd) Run(ctx context.Context, r *run) error {
	if (c.Key == "") == (c.Path == "") || c.Key != "" && c.For != 0 {
		return cmdline.Usage(errors.New("purge: name SITE and PATH, or --key ID alone"))
	}
	if c.For < 0 || c.For > 0 && c.For < time.Second {
		return cmdline.Usage(fmt.Errorf("purge: --for %s (give a second or more)", c.For))
	}
	var answer purgeAnswer
	if err := c.post(ctx, r, "purge", purgeRequest{c.Site, c.Path, c.For.Milliseconds(), c.Key}, &answer); err != nil {
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
	For   time.Duration `help:"Switch off for this time, then on again." placeholder:"DURATION"`
	adminFlag
}

// Help is shown below the usage.
func (switchCmd) Help() string {
	return `Off: within seconds every viewer of the site, at every tracker, closes its links and plays from the origin alone; seeds serve
no viewer. On lifts every switch-off except "off: true" of the site in the configuration. Trackers and seeds remember it.

Examples:
  leeway switch demo off
  leeway switch demo off --for 2h --admin 10.0.0.5:9464
  leeway switch demo on`
}

// Run sends the switch to an admin port.
func (c switchCmd) Run(ctx context.Context, r *run) error {
	if c.For < 0 || c.For > 0 && (c.State == "on" || c.For < time.Second) {
		return cmdline.Usage(fmt.Errorf("switch: --for %s (give a second or more, with off)", c.For))
	}
	var answer switchAnswer
	if err := c.post(ctx, r, "switch", switchRequest{c.Site, c.State == "off", c.For.Milliseconds()}, &answer); err != nil {
		return err
	}
	until := ""
	if answer.Until > 0 {
		until = " until " + moment(answer.Until)
	}
	_, err := fmt.Fprintf(r.env.Stdout, "peer delivery of %s is %s%s\n", answer.Site, c.State, until)
	return err
}
