package session

import (
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/unwind"
)

// Sample is a PERF_RECORD_SAMPLE with its addresses resolved. The Sample and
// all it points to but Thread and Event are valid until the next one is asked
// for.
type Sample struct {
	Time   uint64 // ns of the recording's clock; 0 if not recorded
	Thread *Thread
	CPU    int32 // -1 if not recorded
	Event  *perfdata.Event
	// Period is how many events of its kind the sample stands for.
	Period uint64
	// Stack is leaf first. Stack[0] is an instruction pointer; so is the first
	// user frame under a kernel part. The others are return addresses. It is
	// empty only if the recording has neither ip nor callchain.
	Stack   []image.Loc
	Outcome unwind.Outcome
	// Repaired is how many of the frames, those next to the first user frame,
	// the recorded callchain lacked and have been put back.
	Repaired int
	// Branches are the records of the branch stack, newest first.
	Branches []Branch
	// Interval is nil when the event has neither counter reads nor an earlier tick.
	Interval *Interval
	Raw      *perfdata.Sample
}

// Branch is a branch record with its addresses resolved; both are instruction
// pointers.
type Branch struct {
	From, To image.Loc
	Flags    perfdata.BranchFlags
}

// Interval is what happened between two ticks of one event instance, or
// between its start and its first tick.
type Interval struct {
	// Start and End are the times of the two ticks, ns; Start is 0 if this is
	// the first tick of the event instance.
	Start, End uint64
	// Clock is what the sampling event itself counted in the interval: the
	// difference of its counter if it was read, else the sample's period.
	Clock uint64
	// Counts are the differences of the counters read with the sample, in the
	// order recorded: of a group, leader first. Empty if none was read, or if
	// the first read does not tell when counting began.
	Counts []Count
	// Enabled and Running are how long the counters were on, and how long they
	// were really on the PMU, ns; 0 if not recorded.
	Enabled, Running uint64
	// Waited is how long the thread could have run in the interval but had no
	// CPU, Blocked how long it could not have, ns. Both are 0 without switch
	// records; a wake-up ends Blocked only if the recording has wake-ups.
	// Where the previous tick was another thread's (events of a CPU), only the
	// thread's latest wait and block are known.
	Waited, Blocked uint64
	// WaitedAtEnd is how long the thread had waited for a CPU when it was last
	// switched in, ns; 0 if that was before the interval.
	WaitedAtEnd uint64
	// Overshoot is by how much the sampling event's counter had passed the end
	// of its period when the sample was taken, in units of Clock; 0 if a
	// frequency was asked for, or if the end is not known because samples were
	// lost.
	Overshoot uint64
	// Lost counts records or samples that were lost in the interval.
	Lost uint64
	// Throttled: sampling was stopped during some of the interval.
	Throttled bool
	// Backwards: a counter was lower than before; its difference is given as 0.
	Backwards bool
}

// Multiplexed reports whether the counters shared the PMU with others, so that
// their values cover only part of the interval.
func (i *Interval) Multiplexed() bool { return i.Running < i.Enabled }

// Count is the difference of one counter.
type Count struct {
	Event *perfdata.Event // nil if the counter's id belongs to none
	Value uint64
}

// Count returns the difference counted by event e, and whether it was read.
func (i *Interval) Count(e *perfdata.Event) (uint64, bool) {
	if i == nil {
		return 0, false
	}
	for _, c := range i.Counts {
		if c.Event == e {
			return c.Value, true
		}
	}
	return 0, false
}
