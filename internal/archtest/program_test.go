package archtest

import (
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// linked lists the packages that a program or a room is made of.
func linked(t *testing.T, folder string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "./"+folder)
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return strings.Fields(string(out))
}

// ofLabAlone are dependencies that only the lab has a use for.
var ofLabAlone = []string{"github.com/vishvananda/", "github.com/pion/webrtc/", "github.com/pion/interceptor", "github.com/pion/srtp/"}

// TestTheProgramHoldsNothingOfTheLab: what measures Leeway is no part of what operators run.
func TestTheProgramHoldsNothingOfTheLab(t *testing.T) {
	for _, p := range linked(t, "cmd/leeway") {
		if below, ok := strings.CutPrefix(p, module+"/internal/"); ok && ofLab(roomOf(below)) {
			t.Errorf("leeway links %s, which is of the lab", p)
		}
		for _, d := range ofLabAlone {
			if strings.HasPrefix(p, d) {
				t.Errorf("leeway links %s, which only the lab needs", p)
			}
		}
	}
	of := linked(t, "cmd/leeway-lab")
	for _, d := range append([]string{module + "/internal/lab/netlab"}, ofLabAlone...) {
		if !slices.ContainsFunc(of, func(p string) bool { return strings.HasPrefix(p, d) }) {
			t.Errorf("leeway-lab does not link %s: the rule above names nothing", d)
		}
	}
	if slices.Contains(of, module+"/internal/app") {
		t.Error("leeway-lab links app: it measures the program, and does not hold it")
	}
}

// TestTrackerAndSeedAreWholeAlone: what not every operator uses fills a port of theirs, so both build without it, and without each other.
func TestTrackerAndSeedAreWholeAlone(t *testing.T) {
	for _, service := range []string{"tracker", "seed"} {
		others := slices.Concat(services, optional, adapters, slices.Collect(maps.Keys(extensions)))
		for _, p := range linked(t, "internal/"+service) {
			below, ok := strings.CutPrefix(p, module+"/internal/")
			if room := roomOf(below); ok && room != service && slices.Contains(others, room) {
				t.Errorf("%s links %s: it is to be whole without it", service, room)
			}
		}
	}
}

// TestRulesNameWhatIsThere: a room that a rule names has files, and every owner of a dependency uses it.
func TestRulesNameWhatIsThere(t *testing.T) {
	rooms := map[string][]string{} // the files of each, and what they import
	for _, f := range sources(t) {
		if !f.test {
			rooms[f.room] = append(append(rooms[f.room], f.path), f.imports...)
		}
	}
	for _, room := range slices.Concat(slices.Concat(layers...), services, adapters) {
		if rooms[room] == nil {
			t.Errorf("a rule names the room %q, which has no Go files", room)
		}
	}
	for _, o := range owners {
		for _, room := range o.rooms {
			if !slices.ContainsFunc(rooms[room], func(imp string) bool { return strings.HasPrefix(imp, o.dependency) }) {
				t.Errorf("%s is said to belong to %s, which does not import it", o.dependency, room)
			}
		}
	}
}

// TestWhatTheRaceDetectorLeavesOutIsRun: a test that leaves something out with the race detector is run without it, too.
func TestWhatTheRaceDetectorLeavesOutIsRun(t *testing.T) {
	base := root(t)
	_, recipe, _ := strings.Cut(read(t, filepath.Join(base, "Makefile")), "\ngo-long:")
	recipe, _, _ = strings.Cut(recipe, "\n\n")
	leaves := regexp.MustCompile(`testkit\.(RaceDetector|InOneGoroutine)\b`)
	function := regexp.MustCompile(`(?m)^func .*`)
	leaving := 0
	for _, f := range sources(t) {
		text := read(t, filepath.Join(base, f.path))
		if !f.test || !leaves.MatchString(text) {
			continue
		}
		leaving++
		if !strings.Contains(recipe, "./"+path.Dir(f.path)) {
			t.Errorf("%s leaves something out with the race detector, and `make go-long` does not run it", f.path)
		}
		if !strings.Contains(recipe, "scripts/left-out "+path.Dir(f.path)) {
			continue // all of its tests run
		}
		for _, at := range leaves.FindAllStringIndex(text, -1) {
			within := function.FindAllString(text[:at[0]], -1)
			if len(within) == 0 || !strings.HasPrefix(within[len(within)-1], "func Test") {
				t.Errorf("%s leaves something out with the race detector in no function of a test: scripts/left-out does not find it", f.path)
			}
		}
	}
	if leaving == 0 {
		t.Error("no test leaves anything out: the rule names nothing")
	}
}
