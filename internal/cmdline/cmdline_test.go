package cmdline

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

type grammar struct {
	Version kong.VersionFlag
	Say     sayCmd     `cmd:"" help:"Say something."`
	Hidden  sayCmd     `cmd:"" hidden:""`
	Shell   Completion `cmd:""`
}

type sayCmd struct {
	Word  string `arg:""`
	Loud  int    `help:"How loud." default:"7" placeholder:"N"`
	Place string `help:"From where."`
	How   string `enum:"loud,low," default:"" short:"w"`
	Fast  bool
}

func (c sayCmd) Run(ctx context.Context, said *[]string) error {
	if c.Word == "nothing" {
		return errors.New("nothing said")
	}
	*said = append(*said, c.Word)
	return ctx.Err()
}

// from is a default that no tag says.
func from(v *kong.Value) string { return map[string]string{"place": "here"}[v.Name] }

func TestRun(t *testing.T) {
	for _, c := range []struct {
		args        string
		code        int
		out, errors string // what is contained
		said        int
	}{
		{"say hello", 0, "", "", 1},
		{"say nothing", 1, "", "nothing said", 0},
		{"say", 2, "", "example --help lists commands, example COMMAND --help its flags", 0},
		{"sing", 2, "", `unexpected argument sing`, 0},
		{"--version", 0, "example 1", "", 0},
		{"help say", 0, "Say something.", "", 0},
		{"help sing", 2, "", "unexpected argument sing", 0},
		{"help", 0, "For tests.", "", 0},
		{"shell bash", 0, "complete -o default -F _example_complete example", "", 0},
		{"shell tcsh", 2, "", "bash", 0},
		{"say --help", 0, "Say something.", "", 0},
		{"say --help", 0, "How loud (default 7).", "", 0},
		{"say --help", 0, "From where (default here).", "", 0},
		{"", 0, "For tests.", "", 0},
	} {
		var out strings.Builder
		var said []string
		err := Program{Name: "example", Description: "For tests.", Version: "example 1", Stdout: &out, Stderr: io.Discard, Default: from}.Run(t.Context(), &grammar{}, strings.Fields(c.args), &said)
		if code := ExitCode(err); code != c.code || len(said) != c.said || !strings.Contains(out.String(), c.out) || c.out == "" && out.Len() > 0 {
			t.Errorf("%q: code %d, %v, %q", c.args, code, said, out.String())
		}
		if c.errors != "" && !strings.Contains(err.Error(), c.errors) {
			t.Errorf("%q: %v", c.args, err)
		}
	}
}

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{{nil, 0}, {io.EOF, 1}, {Usage(io.EOF), 2}, {errors.Join(io.EOF, Usage(io.EOF)), 2}} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("ExitCode(%v) = %d, want %d", c.err, got, c.want)
		}
	}
	if !errors.Is(Usage(io.EOF), io.EOF) {
		t.Error("what was said is lost")
	}
}

// TestComplete asks as a shell does: the last word is what is being written.
func TestComplete(t *testing.T) {
	for line, want := range map[string]string{
		"":                      "say shell",
		"s":                     "say shell",
		"x":                     "",
		"say ":                  "",
		"say --":                "--fast --help --how --loud --place --version",
		"say --how ":            "loud low",
		"say -w lo":             "loud low",
		"say --how=lou":         "--how=loud",
		"say --fast --ho":       "--how",
		"say --how loud hi --f": "--fast",
		"shell ":                "bash zsh fish",
		"shell b":               "bash",
		"shell bash ":           "",
	} {
		var out strings.Builder
		err := Program{Name: "example", Stdout: &out, Stderr: io.Discard}.Run(t.Context(), &grammar{}, append([]string{completeWord}, strings.Split(line, " ")...))
		if got := strings.Join(strings.Fields(out.String()), " "); err != nil || got != want {
			t.Errorf("%q: %q, want %q (%v)", line, got, want, err)
		}
	}
}

// TestShellsTakeTheScripts has the shells that are here read them.
func TestShellsTakeTheScripts(t *testing.T) {
	for shell, script := range scripts {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not here", shell)
			continue
		}
		if out, err := exec.Command(path, "-n", "-c", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", shell, err, out)
		}
	}
}
