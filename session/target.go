package session

import (
	"strings"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// PerCPU reports whether an event was opened on CPUs rather than on threads.
// No field of a recording says so (perf sets inherit in both cases). The
// command line does, if it was recorded; else the samples read so far: the
// idle thread is seen by events of CPUs only, and so are two threads by one
// id without inherit.
func (s *Session) PerCPU(e *perfdata.Event) bool {
	if s.target == unknownTarget {
		s.target = targetOf(s.source.Meta().Cmdline)
	}
	switch s.target {
	case cpus:
		return true
	case tasks:
		return false
	}
	return e.Index < len(s.perCPU) && s.perCPU[e.Index]
}

func (s *Session) learnPerCPU(e *perfdata.Event) {
	for len(s.perCPU) <= e.Index {
		s.perCPU = append(s.perCPU, false)
	}
	s.perCPU[e.Index] = true
}

// target is what perf record was told to record.
type target uint8

const (
	unknownTarget target = iota // not looked at yet
	unstated                    // no command line, or not one of record
	tasks
	cpus
)

// Options of perf record that have an argument
// (tools/perf/builtin-record.c, record_options).
const shortWithValue = "cCDeFGjkmoprtu"

var longWithValue = []string{
	"--affinity", "--call-graph", "--cgroup", "--clang-opt", "--clang-path", "--clockid", "--control", "--count",
	"--branch-filter", "--delay", "--event", "--filter", "--freq", "--max-size", "--mmap-flush", "--mmap-pages",
	"--num-thread-synthesize", "--output", "--proc-map-timeout", "--realtime", "--switch-max-files",
	"--switch-output-event", "--synth", "--vmlinux",
}

// targetOf reads a command line: options up to the first word that is none.
// perf records the whole machine if told so, or if told nothing at all; -p, -t
// and -u override that.
func targetOf(cmdline []string) target {
	args, ok := recordArgs(cmdline)
	if !ok {
		return unstated
	}
	wide, task := false, false
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		if a == "--" || a == "-" || !strings.HasPrefix(a, "-") {
			task = task || !wide // a program
			break
		}
		o := option(a)
		wide = wide || o == 'a' || o == 'C'
		task = task || o == 'p' || o == 't' || o == 'u'
		if takesNext(a) && len(args) > 0 {
			args = args[1:]
		}
	}
	if task {
		return tasks
	}
	return cpus
}

// recordArgs returns what follows "record".
func recordArgs(cmdline []string) ([]string, bool) {
	for i, a := range cmdline {
		if i > 0 && a == "record" {
			return cmdline[i+1:], true
		}
	}
	return nil, false
}

// option returns the letter of the option in a that chooses what to record, 0
// if it has none. Single letters can be run together: -agF99.
func option(a string) byte {
	if strings.HasPrefix(a, "--") {
		name, _, _ := strings.Cut(a, "=")
		return map[string]byte{"--all-cpus": 'a', "--cpu": 'C', "--pid": 'p', "--tid": 't', "--uid": 'u'}[name]
	}
	for i := 1; i < len(a); i++ {
		switch c := a[i]; {
		case strings.IndexByte("aCptu", c) >= 0:
			return c
		case strings.IndexByte(shortWithValue+"ISz", c) >= 0:
			return 0 // the rest is its value
		}
	}
	return 0
}

// takesNext reports whether the option's value is the next word.
func takesNext(a string) bool {
	if strings.HasPrefix(a, "--") {
		switch a {
		case "--cpu", "--pid", "--tid", "--uid":
			return true
		}
		for _, l := range longWithValue {
			if a == l {
				return true
			}
		}
		return false
	}
	for i := 1; i < len(a); i++ {
		if strings.IndexByte(shortWithValue, a[i]) >= 0 {
			return i == len(a)-1
		}
		if strings.IndexByte("ISz", a[i]) >= 0 {
			return false
		}
	}
	return false
}
