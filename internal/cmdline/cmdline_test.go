package cmdline

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

type grammar struct {
	Say sayCmd `cmd:"" help:"Say something."`
}

type sayCmd struct {
	Word string `arg:""`
}

func (c sayCmd) Run(ctx context.Context, said *[]string) error {
	if c.Word == "nothing" {
		return errors.New("nothing said")
	}
	*said = append(*said, c.Word)
	return ctx.Err()
}

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
		{"say --help", 0, "Say something.", "", 0},
		{"", 0, "For tests.", "", 0},
	} {
		var out strings.Builder
		var said []string
		err := Program{"example", "For tests.", &out, io.Discard}.Run(t.Context(), &grammar{}, strings.Fields(c.args), &said)
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
