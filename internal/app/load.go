package app

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// problem is one thing wrong with a configuration file, for a person to mend.
type problem struct {
	file string
	line int // 1-based, 0: the file as a whole
	text string
}

func (p problem) Error() string {
	if p.file == "" {
		return p.text
	}
	if p.line == 0 {
		return p.file + ": " + p.text
	}
	return fmt.Sprintf("%s:%d: %s", p.file, p.line, p.text)
}

// problems is everything wrong with a file, in its order.
type problems []problem

func (p problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// loadFile sets in config what the YAML file says. It reads on after a problem, so that all are told at once; the error is
// problems. lines maps each dotted key found to its line. env says what ${NAME} in a text stands for.
func loadFile(file string, config any, env Env) (lines map[string]int, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, problems{{file, 0, "cannot be read: " + err.Error()}}
	}
	return loadYAML(file, text, config, env)
}

func loadYAML(file string, text []byte, config any, env Env) (lines map[string]int, err error) {
	r := &reader{file: file, lines: map[string]int{}, env: env}
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		line, message := syntaxError(err)
		return nil, problems{{file, line, message}}
	}
	if len(tree.Docs) > 1 {
		return nil, problems{{file, 0, "holds more than one document (leave the --- lines out)"}}
	}
	if len(tree.Docs) == 1 && tree.Docs[0].Body != nil {
		r.value("", tree.Docs[0].Body, reflect.ValueOf(config).Elem())
	}
	if len(r.found) > 0 {
		return r.lines, r.found
	}
	return r.lines, nil
}

// reader walks a YAML tree beside the Go value that it fills.
type reader struct {
	file  string
	lines map[string]int
	found problems
	env   Env
}

// serviceSections are those that belong to one service each.
var serviceSections = []string{"tracker", "seed", "turn", "probe", "origin"}

// asker is the service of a command that asks one: it is none of them.
const asker = "asker"

// foreign says whether a key is of a service that this process is not. Its variables may be secrets that this process does not have.
func (e Env) foreign(key string) bool {
	section, _, _ := strings.Cut(key, ".")
	if e.service == asker && section == "nats" {
		return true // it speaks to an admin port
	}
	return e.service != "" && section != e.service && slices.Contains(serviceSections, section)
}

func (r *reader) complain(node ast.Node, format string, args ...any) {
	r.found = append(r.found, problem{r.file, lineOf(node), fmt.Sprintf(format, args...)})
}

// value fills v from node; key is where that is, dotted, "" for the whole file.
func (r *reader) value(key string, node ast.Node, v reflect.Value) {
	if a, ok := node.(*ast.AnchorNode); ok {
		node = a.Value
	}
	if key != "" {
		r.lines[key] = lineOf(node)
	}
	if _, null := node.(*ast.NullNode); null {
		return // a section with nothing below it
	}
	switch {
	case v.Kind() == reflect.Struct:
		r.section(key, node, v)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		r.list(key, node, v)
	default:
		if err := yaml.NodeToValue(node, v.Addr().Interface()); err != nil {
			r.complain(node, "%s: %q is not %s", key, strings.TrimSpace(node.String()), kindName(v.Type()))
		}
		if v.Kind() == reflect.String {
			v.SetString(r.expand(key, node, v.String()))
		}
	}
}

// variable is how a text refers to the environment: ${NAME}, nothing shorter, for a lone dollar may be meant.
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand puts in what the environment says; a variable that is not set, or empty, is a problem, and stays as it is in a section of
// another service.
func (r *reader) expand(key string, node ast.Node, text string) string {
	return variable.ReplaceAllStringFunc(text, func(name string) string {
		value := r.env.Getenv(name[len("${") : len(name)-len("}")])
		if value == "" && r.env.foreign(key) {
			return name
		}
		if value == "" {
			r.complain(node, "%s: %s is not set in the environment", key, name)
		}
		return value
	})
}

func (r *reader) section(key string, node ast.Node, v reflect.Value) {
	pairs, ok := node.(ast.MapNode)
	if !ok {
		r.complain(node, "%s must be a section with keys below it, not %q", orFile(key), strings.TrimSpace(node.String()))
		return
	}
	known := fields(v.Type())
	names := make([]string, len(known))
	for i, f := range known {
		names[i] = f.name
	}
	seen := map[string]bool{}
	for pairs := pairs.MapRange(); pairs.Next(); {
		name := strings.Trim(pairs.Key().String(), `"'`)
		switch {
		case seen[name]:
			r.complain(pairs.Key(), "%s is there twice", join(key, name))
			continue
		default:
			seen[name] = true
		}
		found := false
		for _, f := range known {
			if f.name == name {
				found = true
				r.value(join(key, name), pairs.Value(), v.FieldByIndex(f.index))
			}
		}
		if !found {
			r.complain(pairs.Key(), "unknown key %q%s", join(key, name), suggestion(name, names))
		}
	}
}

func (r *reader) list(key string, node ast.Node, v reflect.Value) {
	items, ok := node.(ast.ArrayNode)
	if !ok {
		r.complain(node, "%s must be a list, not %q", key, strings.TrimSpace(node.String()))
		return
	}
	list := reflect.MakeSlice(v.Type(), 0, 4)
	for items := items.ArrayRange(); items.Next(); {
		item := reflect.New(v.Type().Elem()).Elem()
		preset(item)
		r.value(fmt.Sprintf("%s[%d]", key, list.Len()), items.Value(), item)
		list = reflect.Append(list, item)
	}
	v.Set(list)
}

// preset fills what the value itself says is meant where a file says nothing.
func preset(v reflect.Value) {
	if p, ok := v.Addr().Interface().(interface{ Preset() }); ok {
		p.Preset()
	}
}

// suggestion names the nearest of names, or lists them when none is near.
func suggestion(name string, names []string) string {
	best, distance := "", len(name)/2+2
	for _, n := range names {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), n); d < distance {
			best, distance = n, d
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return "; known here: " + strings.Join(names, ", ")
}

func kindName(t reflect.Type) string {
	switch {
	case t.String() == "time.Duration":
		return `a time with a unit, such as "10s" or "5m"`
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.String:
		return "text"
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		return "a whole number"
	case t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64:
		return "a whole number of 0 or more"
	case t.Kind() == reflect.Float64:
		return "a number"
	}
	return "a " + t.String()
}

func lineOf(node ast.Node) int {
	if pair, ok := node.(*ast.MappingValueNode); ok {
		node = pair.Key
	}
	if m, ok := node.(*ast.MappingNode); ok && len(m.Values) > 0 {
		node = m.Values[0].Key
	}
	if t := node.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

func orFile(key string) string {
	if key == "" {
		return "the file"
	}
	return key
}

var positioned = regexp.MustCompile(`^\[(\d+):\d+\] (.*)`)

// syntaxError takes line and sentence out of the parser's many-line message.
func syntaxError(err error) (line int, message string) {
	first, _, _ := strings.Cut(err.Error(), "\n")
	parts := positioned.FindStringSubmatch(first)
	if parts == nil {
		return 0, "is no YAML: " + first
	}
	line, _ = strconv.Atoi(parts[1]) // the pattern admits digits only
	return line, "is no YAML: " + parts[2]
}
