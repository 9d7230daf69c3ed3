package viewer

import "testing"

// TestANameIsGuessedWhereRulesChangeNothing: only of a manifest without query and credential, and as the site's plain rules name it.
func TestANameIsGuessedWhereRulesChangeNothing(t *testing.T) {
	for url, guessed := range map[string]bool{
		"https://CDN.example/films/1/master.m3u8":              true,
		"https://cdn.example/films/1/master.m3u8?token=secret": false,
		"https://ann:secret@cdn.example/films/1/master.m3u8":   false,
		"://": false,
	} {
		n := naming{url: url}
		if got := n.guess(); got != guessed || (n.name != "") != guessed {
			t.Errorf("%s: guessed %v, named %q", url, got, n.name)
		}
		if n.rules != nil {
			t.Errorf("%s: a guess counts as the site's rules", url)
		}
	}
}

func TestTheRulesOfTheSiteName(t *testing.T) {
	n := naming{url: "https://cdn.example/films/1/master.m3u8?session=7"}
	if err := n.read([]byte(`{"name":"site","hosts":["cdn.example"]}`)); err != nil {
		t.Fatal(err)
	}
	if n.rules == nil || n.name == "" || n.path() == "" || n.path() != (&naming{key: n.path()}).path() {
		t.Errorf("key %q, path %q, name %q", n.key, n.path(), n.name)
	}
	for what, rules := range map[string]string{"not JSON": `{`, "no site": `{"name":""}`, "of another host": `{"name":"site","hosts":["other.example"]}`} {
		n := naming{url: "https://cdn.example/films/1/master.m3u8"}
		if err := n.read([]byte(rules)); err == nil || n.name != "" {
			t.Errorf("rules that are %s: %v, named %q", what, err, n.name)
		}
	}
}
