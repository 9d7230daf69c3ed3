// Command ablation measures what a rule or a constant is worth. It replaces a text of the source by another one, as the rows of a suite
// say, builds a benchmark with `go test -overlay`, and compares the figures with those of the source as it is. No file of the repository changes.
//
//	go -C tools run ./ablation schedule                every row of a suite: schedule, live, stream, experiment, background or
//	                                                   foreground. Results are added to
//	                                                   build/ablation-schedule.jsonl, and what is there is not measured again
//	go -C tools run ./ablation -rows rescue schedule   the rows whose name matches
//	go -C tools run ./ablation -worlds twins schedule  the worlds whose name matches
//	go -C tools run ./ablation -print schedule         the table of what has been measured
//	go -C tools run ./ablation -check                  whether every row still fits the source
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func main() {
	names := flag.String("rows", ".", "regular expression of the rows to measure")
	places := flag.String("worlds", ".", "regular expression of the worlds to play")
	onlyPrint := flag.Bool("print", false, "measure nothing, print the table")
	onlyCheck := flag.Bool("check", false, "measure nothing, say which rows do not fit the source any more")
	atMost := flag.Duration("for", time.Hour, "begin no row after this time")
	flag.Parse()
	err := os.Chdir("..") // of go -C tools
	switch {
	case err != nil:
	case *onlyCheck:
		err = check()
	case suites[flag.Arg(0)] == nil:
		err = errors.New("name a suite: schedule, live, stream, experiment, background or foreground")
	case *onlyPrint:
		err = suites[flag.Arg(0)].run(choice{})
	default:
		var chosen choice
		if chosen.rows, err = regexp.Compile(*names); err != nil {
			break
		}
		if chosen.worlds, err = regexp.Compile(*places); err == nil {
			chosen.until = time.Now().Add(*atMost)
			err = suites[flag.Arg(0)].run(chosen)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ablation:", err)
		os.Exit(1)
	}
}

// suite is the rows that one benchmark plays.
type suite struct {
	name, folder, benchmark string
	figures                 []figure
	rows                    []row
}

func (s *suite) results() string { return "build/ablation-" + s.name + ".jsonl" }

// choice is what is to be measured; the zero value is nothing.
type choice struct {
	rows, worlds *regexp.Regexp
	until        time.Time // no row is begun later
}

// run measures what is chosen and has not been, and prints the table.
func (s *suite) run(chosen choice) error {
	known, err := read(s.results())
	if err != nil {
		return err
	}
	for _, r := range s.rows {
		worlds := r.missing(known, chosen)
		if worlds == "" || time.Now().After(chosen.until) {
			continue
		}
		began := time.Now()
		measured, err := s.measure(r, worlds)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", r.name, err)
			continue
		}
		if err := add(s.results(), measured); err != nil {
			return err
		}
		known = append(known, measured)
		fmt.Fprintf(os.Stderr, "%s %s, %.0f s\n", time.Now().Format(time.TimeOnly), r.name, time.Since(began).Seconds())
	}
	s.print(os.Stdout, known)
	return nil
}

// row is one change of the source.
type row struct {
	name     string
	worlds   string // of the benchmark, separated by |
	file     string
	old, new string // old stands in the file exactly once
}

// result is what was measured with one row.
type result struct {
	Row    string                          `json:"row"`
	Worlds map[string][]map[string]float64 `json:"worlds"` // by world, one set of figures for each seed
}

// check says which rows do not fit the source.
func check() error {
	bad := 0
	for _, s := range suites {
		for _, r := range s.rows {
			if r.file == "" {
				continue
			}
			if _, err := r.changed(); err != nil {
				bad++
				fmt.Fprintf(os.Stderr, "%s: %s: %v\n", s.name, r.name, err)
			}
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d rows do not fit the source; correct them in tools/ablation", bad)
	}
	return nil
}

// changed is the file with the row's change.
func (r row) changed() ([]byte, error) {
	b, err := os.ReadFile(r.file)
	if err != nil {
		return nil, err
	}
	return substitute(b, r.old, r.new)
}

func substitute(source []byte, before, after string) ([]byte, error) {
	if n := strings.Count(string(source), before); n != 1 {
		return nil, fmt.Errorf("%q is there %d times, not once", before, n)
	}
	return []byte(strings.Replace(string(source), before, after, 1)), nil
}

// missing are the worlds of the row that are chosen and were not measured yet.
func (r row) missing(known []result, chosen choice) string {
	if chosen.rows == nil || !chosen.rows.MatchString(r.name) {
		return ""
	}
	var out []string
	for w := range strings.SplitSeq(r.worlds, "|") {
		has := !chosen.worlds.MatchString(w)
		for _, k := range known {
			has = has || k.Row == r.name && len(k.Worlds[w]) > 0
		}
		if !has {
			out = append(out, w)
		}
	}
	return strings.Join(out, "|")
}

// measure builds the benchmark with the change and runs it.
func (s *suite) measure(r row, worlds string) (result, error) {
	out := result{Row: r.name, Worlds: map[string][]map[string]float64{}}
	dir, err := os.MkdirTemp("", "ablation")
	if err != nil {
		return out, err
	}
	defer os.RemoveAll(dir)
	args := []string{"test", "-c", "-vet=off", "-o", filepath.Join(dir, "bench")}
	if r.file != "" {
		overlay, err := r.overlay(dir)
		if err != nil {
			return out, err
		}
		args = append(args, "-overlay", overlay)
	}
	if b, err := exec.Command("go", append(args, "./"+s.folder)...).CombinedOutput(); err != nil {
		return out, fmt.Errorf("build: %w\n%s", err, b)
	}
	c := exec.Command(filepath.Join(dir, "bench"), "-test.run", "^$", "-test.bench", "^Benchmark"+s.benchmark+"$/^("+worlds+")$", "-test.benchtime", "1x")
	c.Dir = s.folder
	c.Env = append(os.Environ(), "GOGC=400")
	b, err := c.CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("%w\n%s", err, b)
	}
	out.parse(s.benchmark, string(b))
	return out, nil
}

// overlay writes the changed file and says so to the compiler.
func (r row) overlay(dir string) (path string, err error) {
	text, err := r.changed()
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return "", err
	}
	original, err := filepath.Abs(r.file)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": {original: file}})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, b, 0o600)
}

// parse reads the lines of a benchmark.
func (r *result) parse(benchmark, out string) {
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark"+benchmark+"/") {
			continue
		}
		r.line(strings.Split(processors.ReplaceAllString(f[0], ""), "/")[1], f[2:])
	}
}

// processors is what the name of a benchmark ends with.
var processors = regexp.MustCompile(`-\d+$`)

// line takes what was measured in a world: of one seed, or of several, whose figures have names that end with # and the seed.
func (r *result) line(world string, f []string) {
	seeds := []map[string]float64{{}}
	for i := 0; i+1 < len(f); i += 2 {
		v, err := strconv.ParseFloat(f[i], 64)
		unit, seed, several := strings.Cut(f[i+1], "#")
		n, bad := 0, error(nil)
		if several {
			n, bad = strconv.Atoi(seed)
		}
		if err != nil || bad != nil || unit == "ns/op" {
			continue
		}
		for len(seeds) <= n {
			seeds = append(seeds, map[string]float64{})
		}
		seeds[n][unit] = v
	}
	r.Worlds[world] = append(r.Worlds[world], seeds...)
}

func read(file string) (all []result, err error) {
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, r)
	}
	return all, lines.Err()
}

func add(file string, r result) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(f).Encode(r); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
