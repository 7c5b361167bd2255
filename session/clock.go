package session

import (
	"strings"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// ClockKind says what makes an event tick, and so whether a tick can have
// waited for the thread it sampled.
type ClockKind uint8

const (
	// ThreadClock stops when the thread leaves the CPU: counters and clocks
	// opened on a thread. A tick never waits for the thread; time off the CPU
	// is no latency.
	ThreadClock ClockKind = iota
	// CPUClock runs with a CPU, whoever has it: events opened on a CPU
	// (perf record -a). The tick samples the thread that runs.
	CPUClock
	// WallClock ticks by itself and samples the thread when it next runs (the
	// timer of a yield-point sampler): time spent waiting is latency.
	WallClock
)

func (k ClockKind) String() string {
	return [...]string{"thread", "cpu", "wall"}[min(k, WallClock)]
}

// ClockOf says which clock ticks the event; perCPU tells whether it was opened
// on CPUs (Session.PerCPU). No kernel event is a wall clock: even cpu-clock
// is stopped with its thread (kernel/events/core.c, cpu_clock_event_del). A
// recorder that samples by one says so in the event's name.
func ClockOf(e *perfdata.Event, perCPU bool) ClockKind {
	switch {
	case e != nil && strings.Contains(e.Name, "wall-clock"):
		return WallClock
	case perCPU:
		return CPUClock
	}
	return ThreadClock
}
