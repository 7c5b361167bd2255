package session

import (
	"strings"
	"testing"
)

func TestTargetOf(t *testing.T) {
	for line, want := range map[string]target{
		"":                                      unstated,
		"perf stat -a sleep 1":                  unstated,
		"perf record":                           cpus,
		"perf record -e cycles":                 cpus,
		"perf record -a sleep 1":                cpus,
		"/usr/bin/perf record -ag -F 99 -- ls":  cpus,
		"perf record -gaF99 ls":                 cpus,
		"perf record ls -a":                     tasks,
		"perf record -e a ls -a":                tasks,
		"perf record -ea ls":                    tasks,
		"perf record --event a -- ls -C 1":      tasks,
		"perf record --call-graph dwarf -C 1 x": cpus,
		"perf record --cpu 1 x":                 cpus,
		"perf record --cpu=1 x":                 cpus,
		"perf record -p 12":                     tasks,
		"perf record -a -p 12":                  tasks,
		"perf record -z -g --tid=3":             tasks,
		"perfcorrect record -F 999 --all-cpus":  cpus,
	} {
		if got := targetOf(strings.Fields(line)); got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
}
