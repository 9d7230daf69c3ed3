package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/leeway-video/leeway/internal/lab/load"
)

// scenarioError is everything that is wrong with a scenario, each with its line.
type scenarioError struct {
	file     string
	problems []scenarioProblem
}

type scenarioProblem struct {
	line       int // 1-based; 0: the file as a whole
	path, text string
}

// Error implements error.
func (e *scenarioError) Error() string {
	lines := make([]string, len(e.problems))
	for i, p := range e.problems {
		at := e.file
		if p.line > 0 {
			at = fmt.Sprintf("%s:%d", e.file, p.line)
		}
		if p.path != "" {
			p.text = p.path + ": " + p.text
		}
		lines[i] = at + ": " + p.text
	}
	return strings.Join(lines, "\n")
}

const mostScenario = 1 << 20 // bytes of a file

// parseScenario reads a scenario. The error is a *scenarioError.
func parseScenario(file string, text []byte) (load.Scenario, error) {
	var s load.Scenario
	fail := func(p ...scenarioProblem) (load.Scenario, error) { return load.Scenario{}, &scenarioError{file, p} }
	if len(text) > mostScenario {
		return fail(scenarioProblem{text: fmt.Sprintf("is larger than %d bytes", mostScenario)})
	}
	err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(&s)
	if err != nil {
		p := scenarioProblem{text: err.Error()}
		var at yaml.Error
		if errors.As(err, &at) {
			p.text = at.GetMessage()
			if t := at.GetToken(); t != nil && t.Position != nil {
				p.line = t.Position.Line
			}
		} else {
			p.line = badDuration(text)
		}
		return fail(p)
	}
	found := s.Check()
	if len(found) == 0 {
		return s, nil
	}
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		return fail(scenarioProblem{text: err.Error()})
	}
	problems := make([]scenarioProblem, len(found))
	for i, p := range found {
		problems[i] = scenarioProblem{lineOf(tree, p.Path), p.Path, p.Text}
	}
	return fail(problems...)
}

var durationKey = regexp.MustCompile(`(?:after|ramp_up|hold|ramp_down|life):\s*["']?([^"',}#]*)`)

// badDuration is the line of the first duration that is none, which the decoder does not say; 0: there is no such line.
func badDuration(text []byte) int {
	for i, line := range strings.Split(string(text), "\n") {
		for _, m := range durationKey.FindAllStringSubmatch(line, -1) {
			if _, err := time.ParseDuration(strings.TrimSpace(m[1])); err != nil {
				return i + 1
			}
		}
	}
	return 0
}

// lineOf is the line of a key, or of what it is missing from; 0 if that is the whole file.
func lineOf(tree *ast.File, path string) int {
	for path != "" {
		if p, err := yaml.PathString("$." + path); err == nil {
			if node, err := p.FilterFile(tree); err == nil && node.GetToken() != nil {
				return node.GetToken().Position.Line
			}
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			break
		}
		path = path[:cut]
	}
	return 0
}

// placeholder is what --set replaces.
var placeholder = regexp.MustCompile(`\$\{([A-Za-z0-9_]+)\}`)

// readScenario reads a file, in which ${NAME} stands for values[NAME].
func readScenario(file string, values map[string]string) (load.Scenario, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return load.Scenario{}, fmt.Errorf("load: scenario: %w", err)
	}
	var missing []scenarioProblem
	for i, line := range strings.Split(string(text), "\n") {
		for _, m := range placeholder.FindAllStringSubmatch(line, -1) {
			if _, given := values[m[1]]; !given {
				missing = append(missing, scenarioProblem{line: i + 1, text: fmt.Sprintf("%s is not given (add --set %s=…)", m[0], m[1])})
			}
		}
	}
	if len(missing) > 0 {
		return load.Scenario{}, &scenarioError{file, missing}
	}
	text = placeholder.ReplaceAllFunc(text, func(m []byte) []byte { return []byte(values[string(m[2:len(m)-1])]) })
	return parseScenario(file, text)
}
