package transferbench

import (
	"os"
	"strconv"
	"strings"

	"github.com/leeway-video/leeway/internal/lab/proc"
)

// userHertz is the unit of times in /proc, the same on every Linux that Go runs on.
const userHertz = 100

// spent is time of processors, in seconds.
type spent struct {
	all     float64
	threads map[string]float64 // of those that live, by their names
}

// since is what was used after a look.
func (s spent) since(before spent) spent {
	d := spent{s.all - before.all, map[string]float64{}}
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
			addThreads(sum.threads, pid)
		}
	}
	return sum
}

// addThreads adds what the threads of a process have used.
func addThreads(to map[string]float64, pid int) {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task/"
	entries, _ := os.ReadDir(tasks)
	for _, e := range entries {
		stat, err := os.ReadFile(tasks + e.Name() + "/stat")
		if err != nil {
			continue
		}
		name, _ := readStat(string(stat))
		if b, err := os.ReadFile(tasks + e.Name() + "/schedstat"); err == nil {
			first, _, _ := strings.Cut(string(b), " ")
			ns, _ := strconv.ParseFloat(first, 64)
			to[name] += ns / 1e9
		}
	}
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
