package app

import (
	"fmt"
	"path/filepath"
	"testing"
)

// TestASiteOfAFileHasAControlGroup: one that says nothing of it; zero is what it says.
func TestASiteOfAFileHasAControlGroup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leeway.yaml")
	write(t, file, "sites:\n  - {name: one, hosts: [a.example]}\n  - {name: two, hosts: [b.example], policy: {control_group_permille: 0}}\n  - {name: three, hosts: [c.example], policy: {control_group_permille: 50, relay: never}}\n")
	var c Config
	if _, err := loadFile(file, &c, Env{}); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, s := range c.Sites {
		got += fmt.Sprintf("%s %d ", s.Name, s.Policy.ControlGroupPermille)
	}
	if got != "one 30 two 0 three 50 " {
		t.Error(got)
	}
	write(t, file, "name: mine\nhosts: [a.example]\n")
	if s, err := loadSite(file, Env{}); err != nil || s.Policy.ControlGroupPermille != 30 {
		t.Errorf("%+v, %v", s, err)
	}
}
