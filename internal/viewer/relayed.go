package viewer

import "strings"

// withoutRelays are the servers for a link that is not to be relayed.
func withoutRelays(servers []ICEServer) (out []ICEServer) {
	for _, s := range servers {
		var urls []string
		for _, u := range s.URLs {
			if !strings.HasPrefix(u, "turn") {
				urls = append(urls, u)
			}
		}
		if len(urls) > 0 {
			out = append(out, ICEServer{URLs: urls, Username: s.Username, Credential: s.Credential})
		}
	}
	return out
}
