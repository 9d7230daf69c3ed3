package app

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/access"
	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/jwtauth"
)

type tokenCmd struct {
	Keygen  tokenKeygenCmd  `cmd:"" help:"Make a signing key for join tokens, and add its public half to a tracker's keys."`
	Mint    tokenMintCmd    `cmd:"" help:"Make a join token."`
	Verify  tokenVerifyCmd  `cmd:"" help:"Print what a tracker would allow for a token, or why it would refuse it."`
	Inspect tokenInspectCmd `cmd:"" help:"Print what a token says, without checking its signature."`
}

type tokenKeygenCmd struct {
	File string `arg:"" help:"New file for the signing key. It stays with the backend that makes tokens." placeholder:"FILE"`
	Keys string `help:"Tracker's file of keys (token_keys of a site) to add the public key to; created if missing. By default the key is printed." placeholder:"FILE"`
	Alg  string `help:"EdDSA (Ed25519: a tracker can check tokens but not sign them), or HS256 for backends without EdDSA." enum:"EdDSA,HS256" default:"EdDSA"`
	ID   string `help:"Name of the key (kid); random by default." placeholder:"NAME"`
}

// Help is shown below the usage.
func (tokenKeygenCmd) Help() string {
	return `Keys are JSON Web Keys; most JWT libraries read them. To replace a key: make a new one with --keys, sign with it from then on, and
remove the old one from the file when the last token that it signed has expired. Trackers read the file again by themselves.

Examples:
  leeway token keygen signing.jwk --keys keys.json
  leeway token keygen --alg HS256 --id 2026-11 signing.jwk --keys keys.json`
}

// Run makes both files.
func (c *tokenKeygenCmd) Run(r *run) error {
	id := c.ID
	if id == "" {
		var b [6]byte
		_, _ = rand.Read(b[:]) // never fails
		id = base64.RawURLEncoding.EncodeToString(b[:])
	}
	key, err := access.NewKey(c.Alg, id)
	if err != nil {
		return cmdline.Usage(fmt.Errorf("token keygen: %w", err))
	}
	text, err := json.MarshalIndent(key, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return cmdline.Usage(fmt.Errorf("token keygen: %s is there already; a key is not written over", c.File))
	}
	if err != nil {
		return cmdline.Usage(fmt.Errorf("token keygen: %w", err))
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err == nil && c.Keys != "" {
		err = addKey(c.Keys, key)
	}
	if err != nil {
		return fmt.Errorf("token keygen: %w", errors.Join(err, os.Remove(c.File)))
	}
	if c.Keys == "" {
		_, err = r.env.Stdout.Write(keySet(access.Keys{key.Checking()}))
		return err
	}
	_, err = fmt.Fprintf(r.env.Stdout, "Key %s: %s signs, %s checks.\n", key.ID, c.File, c.Keys)
	return err
}

// keySet is a JWK Set as a file has it.
func keySet(keys access.Keys) []byte {
	text, err := json.MarshalIndent(map[string]access.Keys{"keys": keys}, "", "  ")
	if err != nil {
		panic(err) // text and bytes
	}
	return append(text, '\n')
}

// replaceFile writes a file whole, under another name first. It may hold secrets, and a service of another user may read it: its
// owner and permissions do not change.
func replaceFile(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-") // mode 0600
	if err != nil {
		return err
	}
	if info, was := os.Stat(path); was == nil {
		err = errors.Join(sameOwner(f, info), f.Chmod(info.Mode().Perm()))
	}
	if err == nil {
		_, err = f.Write(text)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

type tokenMintCmd struct {
	Key      string        `help:"File of the signing key." required:"" placeholder:"FILE"`
	Site     string        `help:"Name of the site." required:"" placeholder:"NAME"`
	Title    []string      `help:"Title that may be joined; a * at its end matches any rest. May be repeated; by default every title." placeholder:"PATTERN" sep:"none"`
	Manifest []string      `help:"Path of a manifest that these titles may be joined with; a * at its end matches any rest. May be repeated. Explicit titles need one, or an entry of title.explicit in the site." placeholder:"PATTERN" sep:"none"`
	Sub      string        `help:"Subject: the backend's name for the user. A subject has a limited number of sessions at a time." placeholder:"NAME"`
	Group    string        `help:"Viewers of one group meet each other first." placeholder:"NAME"`
	Role     string        `help:"Upper bound of the viewer's role: full, leech, relay-only, off." placeholder:"ROLE"`
	Unknown  string        `name:"unknown-line" help:"What a phone that does not say how it is connected is, in place of the site's policy: leech, full." placeholder:"ROLE"`
	Upload   int64         `name:"upload-kbps" help:"What the viewer sends to others at most, kbit/s, 100 to 10000000; the site's cap holds if it is lower." placeholder:"KBPS"`
	Disk     int64         `name:"disk-bytes" help:"What the viewer's pages keep on the disk at most, bytes, 1 to 1099511627776, in place of the site's policy; 1 keeps nothing." placeholder:"BYTES"`
	Life     time.Duration `help:"How long the token is valid." default:"5m"`
	After    time.Duration `help:"Time from now until the token becomes valid." default:"0s"`
}

// Help is shown below the usage.
func (tokenMintCmd) Help() string {
	return `A site's backend makes tokens itself, with these claims (spec/access.md). This command is for trying them, and for scripts.

Examples:
  leeway token mint --key signing.jwk --site demo
  leeway token mint --key signing.jwk --site demo --title /media/bbb --title '/live/*' --group campus-1 --role leech --life 1h
  leeway token mint --key signing.jwk --site demo --title trailer-7 --manifest '/trailers/7/*'`
}

// Run prints a token.
func (c *tokenMintCmd) Run(r *run) error {
	text, err := os.ReadFile(c.Key)
	if err != nil {
		return cmdline.Usage(fmt.Errorf("token mint: %w", err))
	}
	key, err := access.ParseKey(text)
	if err != nil {
		return cmdline.Usage(fmt.Errorf("token mint: %s %w", c.Key, err))
	}
	now := time.Now()
	claims := access.Claims{Site: c.Site, Subject: c.Sub, Titles: c.Title, Manifests: c.Manifest, Group: c.Group, Role: c.Role, Unknown: c.Unknown, Upload: c.Upload, Disk: c.Disk, Expires: now.Add(c.After + c.Life)}
	if c.After > 0 {
		claims.NotBefore = now.Add(c.After)
	}
	token, err := jwtauth.Sign(claims, key)
	if err != nil {
		return fmt.Errorf("token mint: %w", err)
	}
	// What a tracker would not take is not made.
	if _, err := jwtauth.Check(token, c.Site, access.Keys{key}, now.Add(c.After)); err != nil {
		return cmdline.Usage(fmt.Errorf("token mint: %w", err))
	}
	_, err = fmt.Fprintln(r.env.Stdout, token)
	return err
}

type tokenVerifyCmd struct {
	Token    string `arg:"" help:"The token."`
	Keys     string `help:"Tracker's file of keys." required:"" placeholder:"FILE"`
	Site     string `help:"Name of the site." required:"" placeholder:"NAME"`
	Title    string `help:"Check whether the token covers this title." placeholder:"TITLE"`
	Manifest string `help:"Check whether the token names the manifest of this path." placeholder:"PATH"`
}

// Help is shown below the usage.
func (tokenVerifyCmd) Help() string {
	return "Exits with 0 when the token is good, with 1 when it is not.\n\nExamples:\n  leeway token verify --keys keys.json --site demo --title /media/bbb \"$TOKEN\""
}

// Run prints the grant.
func (c *tokenVerifyCmd) Run(r *run) error {
	text, err := os.ReadFile(c.Keys)
	if err != nil {
		return cmdline.Usage(fmt.Errorf("token verify: %w", err))
	}
	keys, err := access.ParseKeys(text)
	if err != nil {
		return cmdline.Usage(fmt.Errorf("token verify: %s %w", c.Keys, err))
	}
	now := time.Now()
	grant, err := jwtauth.Check(strings.TrimSpace(c.Token), c.Site, keys, now)
	if err == nil && c.Title != "" && !grant.Covers(c.Title) {
		err = access.Refuse(access.OtherTitle, "It covers: "+strings.Join(grant.Titles, ", ")+".", "The token does not cover the title.")
	}
	if err == nil && c.Manifest != "" && !grant.Names(c.Manifest) {
		err = access.Refuse(access.OtherManifest, "It names: "+strings.Join(grant.Manifests, ", ")+". Titles that begin with a slash need none; for others the site's title.explicit may say it.", "The token does not name the manifest.")
	}
	var refused *access.TokenError
	if errors.As(err, &refused) {
		return fmt.Errorf("token verify: refused (%s): %w", refused.Reason, err)
	}
	if err != nil {
		return fmt.Errorf("token verify: %w", err)
	}
	titles := grant.Titles
	if titles == nil {
		titles = []string{"*"}
	}
	return printJSON(r, map[string]any{
		"site": c.Site, "subject": grant.Subject, "titles": titles, "manifests": append([]string{}, grant.Manifests...), "group": grant.Group, "role": grant.Role, "unknown_line": grant.Unknown, "upload_kbps": grant.Upload, "disk_bytes": grant.Disk, "key_id": grant.KeyID,
		"expires": grant.Expires.UTC().Format(time.RFC3339), "seconds_left": int(grant.Expires.Sub(now).Seconds()),
	})
}

type tokenInspectCmd struct {
	Token string `arg:"" help:"The token."`
}

// Help is shown below the usage.
func (tokenInspectCmd) Help() string {
	return "Nothing of what it prints has been checked; see leeway token verify.\n\nExamples:\n  leeway token inspect \"$TOKEN\""
}

// Run prints header and claims.
func (c *tokenInspectCmd) Run(r *run) error {
	header, claims, err := jwtauth.Peek(strings.TrimSpace(c.Token))
	if err != nil {
		return fmt.Errorf("token inspect: %w", err)
	}
	return printJSON(r, map[string]any{"header": header, "claims": claims, "verified": false})
}

func printJSON(r *run, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = r.env.Stdout.Write(append(text, '\n'))
	return err
}
