package transferbench

import (
	"os"
	"strconv"
	"strings"

	"github.com/leeway-video/leeway/internal/lab/proc"
)

// userHertz is the unit of times in /proc, the same on every Linux that Go runs on.
const userHertz = 100

// spent is time of processors, in seconds, and how often threads had to be woken for it.
type spent struct {
	all     float64
	wakes   float64            // of those that live: times that one waited for something
	threads map[string]float64 // of those that live, by their names
}

// since is what was used after a look.
func (s spent) since(before spent) spent {
	d := spent{s.all - before.all, s.wakes - before.wakes, map[string]float64{}}
	for name, used := range s.threads {
		d.threads[name] = used - before.threads[name]
	}
	return d
}

// tree is what a process and everything below it have used.
func tree(root int) spent {
	sum := spent{threads: map[string]float64{}}
	for _, pid := range proc.Family(root) {
		if b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil {
			_, ticks := readStat(string(b))
			sum.all += ticks / userHertz
			sum.addThreads(pid)
		}
	}
	return sum
}

// pageThread is the name of a page's own thread. To the kernel, the first thread of a process has the name of the program.
const pageThread = "renderer"

// kindOf is what a browser's process is for, by its command line; empty for the first of them, and for other programs. A process that
// was forked from another one has put blanks between its arguments.
func kindOf(cmdline string) string {
	for arg := range strings.FieldsFuncSeq(cmdline, func(r rune) bool { return r == 0 || r == ' ' }) {
		if kind, is := strings.CutPrefix(arg, "--type="); is {
			return kind
		}
	}
	return ""
}

// addThreads adds what the threads of a process have used.
func (s *spent) addThreads(pid int) {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task/"
	entries, _ := os.ReadDir(tasks)
	cmdline, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline") // none: it is gone
	for _, e := range entries {
		stat, err := os.ReadFile(tasks + e.Name() + "/stat")
		if err != nil {
			continue
		}
		name, _ := readStat(string(stat))
		if kind := kindOf(string(cmdline)); kind != "" && e.Name() == strconv.Itoa(pid) {
			name = kind
		}
		if b, err := os.ReadFile(tasks + e.Name() + "/schedstat"); err == nil {
			first, _, _ := strings.Cut(string(b), " ")
			ns, _ := strconv.ParseFloat(first, 64)
			s.threads[name] += ns / 1e9
		}
		if b, err := os.ReadFile(tasks + e.Name() + "/status"); err == nil {
			s.wakes += readWakes(string(b))
		}
	}
}

// readWakes reads from a thread's status how often it gave its processor up to wait.
func readWakes(status string) float64 {
	_, rest, _ := strings.Cut(status, "\nvoluntary_ctxt_switches:")
	line, _, _ := strings.Cut(rest, "\n")
	n, _ := strconv.ParseFloat(strings.TrimSpace(line), 64)
	return n
}

// readStat reads a process's name and the ticks that it has used, with those of its children that are gone.
func readStat(text string) (name string, ticks float64) {
	const cutime, cstime = 13, 14 // fields behind the name, which may hold anything
	end := strings.LastIndexByte(text, ')')
	fields := strings.Fields(text[end+1:])
	if len(fields) <= cstime {
		return "", 0
	}
	name = text[strings.IndexByte(text, '(')+1 : end]
	for _, field := range fields[cutime-2 : cstime+1] {
		n, _ := strconv.ParseFloat(field, 64)
		ticks += n
	}
	return name, ticks
}
