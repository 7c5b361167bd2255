package session

import "github.com/perfcorrect/perfcorrect/perfdata"

// overshoot is how far the counter of the sampling event, which has value, is
// past the end of the period that r ends. The kernel keeps the phase
// (perf_event_set_period, and hrtimer_forward_now for clocks): a period begins
// where the one before was to end.
//
//   - If all periods are as the event's attributes say, they end at the
//     multiples of that.
//   - If the samples of an event with a period tell others (periods drawn at
//     random, events that count several at once), they end at the sums.
//   - If a frequency was asked for, nothing is known: what samples tell then is
//     on most kernels the period that begins, and the last one is lost
//     (intel_pmu_handle_irq restarts the counter before it asks for last_period).
func (s *Session) overshoot(v *Interval, in *instance, r *perfdata.Sample, value uint64) uint64 {
	e := r.Event
	if e.Freq() || e.SamplePeriod == 0 {
		return 0
	}
	if !s.varies(r) {
		in.due = value - value%e.SamplePeriod
		return value % e.SamplePeriod
	}
	return in.past(value, r.Period, v.Lost > 0 || v.Throttled)
}

// past is overshoot for periods that vary. The sum is wrong, and begins anew
// with this tick, if the periods of some ticks were lost; if the first period
// was shorter than recorded, because the clock started in the middle of it;
// and if the next tick would have been due as well, because the kernel then
// starts a new period.
func (in *instance) past(value, period uint64, gap bool) uint64 {
	due := in.due + period
	in.due = due
	if gap || value < due || value-due >= period {
		in.due = value
		return 0
	}
	return value - due
}

// varies reports whether samples of an event tell periods other than its
// attributes do.
func (s *Session) varies(r *perfdata.Sample) bool {
	e := r.Event
	if e.Index < len(s.varying) && s.varying[e.Index] {
		return true
	}
	if r.Has&perfdata.FieldPeriod == 0 || r.Period == e.SamplePeriod {
		return false
	}
	for len(s.varying) <= e.Index {
		s.varying = append(s.varying, false)
	}
	s.varying[e.Index] = true
	return true
}
