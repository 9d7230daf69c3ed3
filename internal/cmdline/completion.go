package cmdline

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completeWord is the first argument of a shell that asks what may come next (Completion). The rest are the words of the line.
const completeWord = "__complete"

// Completion is a command that prints what a shell needs to complete the program's command lines.
type Completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is shown below the usage.
func (Completion) Help() string {
	return `Examples:
  source <(leeway completion bash)                                      # in ~/.bashrc
  source <(leeway completion zsh)                                       # in ~/.zshrc, after compinit
  leeway completion fish > ~/.config/fish/completions/leeway.fish`
}

// The scripts ask the program itself, so that they know what it knows. Where it has nothing to say the shell completes files.
var scripts = map[string]string{
	"bash": `_NAME() {
  local IFS=$'\n'
  COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _NAME PROGRAM
`,
	"zsh": `_NAME() {
  local -a found
  found=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "${found[1]}" ]]; then compadd -- "${found[@]}"; else _files; fi
}
compdef _NAME PROGRAM
`,
	"fish": `function __NAME
  set -l line (commandline -opc) (commandline -ct)
  set -l found ($line[1] __complete $line[2..-1] 2>/dev/null)
  if test -n "$found"
    printf '%s\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c PROGRAM -f -a '(__NAME)'
`,
}

// Run prints the script.
func (c Completion) Run(k *kong.Context) error {
	name := strings.ReplaceAll(k.Model.Name, "-", "_")
	_, err := io.WriteString(k.Stdout, strings.NewReplacer("NAME", name+"_complete", "PROGRAM", k.Model.Name).Replace(scripts[c.Shell]))
	return err
}

// complete prints what may come instead of the last word, one a line; nothing where it is a value that only the caller knows.
func complete(w io.Writer, root *kong.Node, words []string) error {
	if len(words) == 0 {
		words = []string{""}
	}
	node, value := root, (*kong.Flag)(nil)
	positional := 0
	for _, word := range words[:len(words)-1] {
		flag, given := flagOf(node, word)
		switch child := childOf(node, word); {
		case value != nil:
			value = nil
		case flag != nil && !given:
			value = flag
		case strings.HasPrefix(word, "-"):
		case child != nil:
			node, positional = child, 0
		default:
			positional++
		}
	}
	last := words[len(words)-1]
	for _, candidate := range candidates(node, value, positional, last) {
		if strings.HasPrefix(candidate, last) {
			if _, err := fmt.Fprintln(w, candidate); err != nil {
				return err
			}
		}
	}
	return nil
}

func candidates(node *kong.Node, value *kong.Flag, positional int, last string) (all []string) {
	if value != nil {
		return choices(value.Value)
	}
	if name, _, given := strings.Cut(last, "="); given && strings.HasPrefix(name, "-") {
		if flag, _ := flagOf(node, name); flag != nil {
			for _, c := range choices(flag.Value) {
				all = append(all, name+"="+c)
			}
		}
		return all
	}
	if strings.HasPrefix(last, "-") {
		for _, group := range node.AllFlags(true) {
			for _, f := range group {
				all = append(all, "--"+f.Name)
			}
		}
		slices.Sort(all)
		return all
	}
	for _, child := range node.Children {
		if !child.Hidden {
			all = append(all, child.Name)
		}
	}
	if positional < len(node.Positional) {
		all = append(all, choices(node.Positional[positional])...)
	}
	return all
}

// choices are the values of a closed set.
func choices(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return slices.DeleteFunc(v.EnumSlice(), func(c string) bool { return c == "" }) // empty: not given
}

func childOf(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name || slices.Contains(child.Aliases, name) {
			return child
		}
	}
	return nil
}

// flagOf is the flag of a word; given: no value follows as a word of its own.
func flagOf(node *kong.Node, word string) (flag *kong.Flag, given bool) {
	name, _, has := strings.Cut(word, "=")
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
				return f, has || f.IsBool() || f.IsCounter()
			}
		}
	}
	return nil, false
}
