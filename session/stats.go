package session

import "github.com/perfcorrect/perfcorrect/unwind"

// Stats counts what was seen and what went wrong, for the caller to print.
type Stats struct {
	Samples   uint64
	Events    []EventStats // by Event.Index
	Threads   int          // distinct ones, the idle thread not counted
	Processes int          // born during the recording
	First     uint64       // time of the first and the last sample, ns
	Last      uint64

	Frames     uint64 // addresses looked up, of stacks and branch records
	Unresolved uint64 // of them, in no known mapping
	Outcomes   [unwind.NumOutcomes]uint64
	Repaired   uint64 // samples in whose callchain frames were put back
	PutBack    uint64 // these frames
	// Mended counts those of Repaired for which only the code told what was
	// missing; Unmended the samples whose leaf's caller is known to be missing
	// and could not be told.
	Mended, Unmended uint64
	Stitched         uint64            // calls of branch-record call stacks taken over from earlier samples
	Unwound          unwind.DWARFStats // how callers were found in registers and stack dumps

	NoTime        uint64 // samples without time
	NoThread      uint64 // samples that do not say of which thread they are
	UnknownThread uint64 // samples of threads that no record had announced
	NoEvent       uint64 // samples of no known event, left out

	LostRecords uint64 // sum of LOST
	LostSamples uint64 // sum of LOST_SAMPLES
	Throttles   uint64 // THROTTLE records
	Unthrottles uint64

	Intervals uint64 // samples that have one
	// Of these, the ones in which something was lost, sampling was stopped,
	// the counters were multiplexed, or a counter went backwards.
	LossyIntervals       uint64
	ThrottledIntervals   uint64
	MultiplexedIntervals uint64
	BackwardIntervals    uint64
	// UnknownStarts counts first reads whose counters were on before the
	// recording began, so that the difference is not known.
	UnknownStarts uint64

	SwitchesOut    uint64 // threads leaving a CPU
	Preempted      uint64 // of them, still runnable
	SwitchesIn     uint64
	Wakeups        uint64
	MissedSwitches uint64 // a thread ran although no record had switched it in

	DataMappings    uint64 // mappings that are not code
	MissingMappings uint64 // records that say perf gave up reading /proc/PID/maps of a process
	ForeignMappings uint64 // of guests and hypervisors, ignored
	SpacesCut       uint64 // address spaces not copied at fork, to bound memory

	DeferredSamples uint64 // samples whose user callchain came later
	DeferredMissing uint64 // of them, those it never came for
}

// EventStats are the counts of one event.
type EventStats struct {
	Samples uint64
	Period  uint64 // sum
	Stacks  uint64 // samples with more than an ip
	Reads   uint64 // samples with counter values
	Cut     uint64 // stacks known to lack outer frames
}

// HasSwitches reports whether the recording shows when threads ran, as far as
// it has been read.
func (s *Stats) HasSwitches() bool { return s.SwitchesIn+s.SwitchesOut > 0 }

func (s *Session) eventStats(index int) *EventStats {
	for len(s.stats.Events) <= index {
		s.stats.Events = append(s.stats.Events, EventStats{})
	}
	return &s.stats.Events[index]
}
