package docs

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// person matches words for persons, which programs are not.
var person = regexp.MustCompile(`(?i)\b(who|whom|whoever|nobody|somebody)\b`)

// TestProgramsAreNouns: a specification says the client, the peer, the seed.
func TestProgramsAreNouns(t *testing.T) {
	pages := 0
	eachFile(t, regexp.MustCompile(`\.md$`), func(file, text string) {
		if path.Dir(file) != "spec" {
			return
		}
		pages++
		text = literal.ReplaceAllString(fenced.ReplaceAllString(text, ""), "")
		for _, line := range strings.Split(text, "\n") {
			if word := person.FindString(line); word != "" {
				t.Errorf("%s says %q: name the program\n%s", file, word, line)
			}
		}
	})
	if pages < 10 {
		t.Errorf("only %d specifications were read", pages)
	}
}
