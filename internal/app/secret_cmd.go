package app

import "fmt"

type secretCmd struct{}

// Help is shown below the usage.
func (secretCmd) Help() string {
	return `32 random bytes in base64url. Every secret of the configuration takes it: tracker.secret, turn.secrets, the secret of tracker.ice_servers,
seed.fleet.secret, admin.token, tracker.webtorrent.token, nats.password. Join tokens are signed with keys of their own: leeway token keygen.

Examples:
  leeway secret
  LEEWAY_TRACKER_SECRET=$(leeway secret) leeway tracker --config leeway.yaml`
}

// Run prints a secret.
func (secretCmd) Run(r *run) error {
	secret, err := newSecret()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(r.env.Stdout, secret)
	return err
}
