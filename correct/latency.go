package correct

import (
	"fmt"

	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/session"
)

// LatencyMode says what is taken for the latency of a tick: how long after it
// was due the sample was taken, in units of the sampling event.
type LatencyMode uint8

const (
	// LatencyAuto takes what holds for the clock of the event. A counter of
	// the hardware that was read with the sample shows by how much it had
	// passed the end of its period. A clock that goes on while the thread
	// cannot run delays the tick until it can, for as long as it waited for a
	// CPU. Else there is no latency: in particular none for waiting where the
	// clock stops with the thread, for no tick falls due meanwhile, and taking
	// the waiting for latency would take weight from samples that have no more
	// than their share. Nor is the overshoot of a software clock one: see
	// LatencyOvershoot.
	LatencyAuto LatencyMode = iota
	// LatencyOff corrects call density alone.
	LatencyOff
	// LatencyOvershoot takes the overshoot of the counter whatever the clock.
	// A software clock's timer and its count drift apart a little with each
	// context switch (kernel/events/core.c, perf_swevent_cancel_hrtimer keeps
	// the time left, the count goes on until the event is stopped), so that
	// its overshoot becomes arbitrary in the course of a recording.
	LatencyOvershoot
	// LatencySched takes the time the thread waited for a CPU before it ran,
	// in ns, whatever the clock.
	LatencySched
)

var latencyNames = []string{"auto", "off", "overshoot", "sched"}

func (m LatencyMode) String() string { return latencyNames[m] }

// ParseLatency is the inverse of LatencyMode.String.
func ParseLatency(s string) (LatencyMode, error) {
	for i, name := range latencyNames {
		if s == name {
			return LatencyMode(i), nil
		}
	}
	return 0, fmt.Errorf("unknown latency mode %q: have auto, off, overshoot, sched", s)
}

// latency returns the latency of the tick that ended interval i, in units of
// the event, and what it is known from.
func latency(m LatencyMode, e *perfdata.Event, i *session.Interval) (float64, evidence) {
	overshoot := m == LatencyOvershoot || m == LatencyAuto && !isClock(e)
	sched := m == LatencySched || m == LatencyAuto && session.ClockOf(e, false) == session.WallClock
	switch {
	case i == nil || m == LatencyOff:
	case overshoot && i.Overshoot > 0:
		return float64(i.Overshoot), fromOvershoot
	case sched && i.WaitedAtEnd > 0:
		return float64(i.WaitedAtEnd), fromSched
	}
	return 0, noEvidence
}

type evidence uint8

const (
	noEvidence evidence = iota
	fromOvershoot
	fromSched
	numEvidence
)

var evidenceNames = [numEvidence]string{"none", "counter overshoot", "waiting for a CPU"}

// isClock reports whether the event's unit is the nanosecond.
func isClock(e *perfdata.Event) bool {
	return e.Type == perfdata.TypeSoftware && (e.Config == perfdata.SWCPUClock || e.Config == perfdata.SWTaskClock)
}
