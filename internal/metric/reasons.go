package metric

// Reason is why a segment did not come from a peer.
type Reason struct {
	Name    string // label in metrics, and word of the protocols
	Meaning string
	Do      string // what an operator can do where many segments have it
}

// reasons have one row each, in the order of spec/metrics.md.
var reasons = []Reason{
	{"no-cert", "A peer has it, and no seed or packager has certified it.", "Usual where a viewer is alone with a title: seeds certify from policy.certify_from viewers on. With more of them: is a seed there, is its key in force, and does it reach fetch_base? A title whose peers cost more than they save rests: leeway_seed_resting_titles. Live: let the packager sign (leeway certify)."},
	{"no-holder", "No other viewer that is linked has it, or all of it.", "Usual for the first viewer of a title and in a long tail of titles. With many viewers of one title: look at links that never opened, at links by a relay alone (used last), and at signed URLs."},
	{"udp-blocked", "The viewer's network lets no UDP through.", "Name a relay with turns: in tracker.ice_servers."},
	{"symmetric-nat", "The viewer's network gives each link another port, so links do not open.", "Name a relay in tracker.ice_servers."},
	{"lna-denied", "The viewer's browser asked whether the page may reach the local network, and was told no.", "Say on the page why it asks, or set policy.local of the site to never."},
	{"insecure-context", "The page is not served over https.", "Serve the page over https."},
	{"policy", "The site, the token or the viewer's line allows no peers, or the viewer has not consented.", "Look at policy.role and policy.hold_back_permille of the site, at leeway switch, and at the roles in tokens. Phones: policy.unknown_line."},
	{"budget", "The seeds had spent what they may send.", "Raise seed.rate, seed.daily_bytes or seed.site_budgets, if this traffic is wanted."},
	{"needs-token", "The manifest's address has a credential, and the page showed no join token.", "Have the backend give the page a join token (docs/operations/access.md)."},
	{"urgent", "It was needed so soon that the origin was asked at once.", "Usual at the start and after a seek. Much of it later: the players' buffers are short, or the viewers' uplinks slow."},
	{"control-group", "The viewer is in the control group, which the origin alone serves.", "Nothing: it is what the others are compared with (policy.control_group_permille)."},
}

// AllReasons lists the reasons. Treat as constants.
func AllReasons() []Reason { return reasons }

func reasonNames() []string {
	names := make([]string, len(reasons))
	for i, r := range reasons {
		names[i] = r.Name
	}
	return names
}
