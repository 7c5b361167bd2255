package session

import (
	"slices"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// instance is one event on one thread or CPU: what ticks.
type instance struct {
	id     uint64
	ticked bool
	last   uint64 // time of the last tick
	cpu    uint32 // of the last tick

	thread          *Thread // sampled by the last tick, for comparison only
	waited, blocked uint64  // of that thread, then

	counters         []counter // as read by the last tick
	due              uint64    // what the event's counter was to be at the last tick, if its periods vary
	enabled, running uint64

	lost      uint64 // Session.lost of the CPU, then
	throttled bool   // since the last tick, or still
	stopped   bool   // THROTTLE without UNTHROTTLE yet
}

// counter is the last value of a counter as one instance read it. The members
// of a group are read by every event that samples, so each keeps its own.
type counter struct {
	id          uint64
	event       *perfdata.Event
	value, lost uint64
}

// instanceKey names an instance that no thread owns.
type instanceKey struct {
	event *perfdata.Event // nil if id is the kernel's
	id    uint64          // or the CPU
}

// instance returns the instance a sample is a tick of.
//
// An event has one id for each CPU or thread it was opened on. With inherit,
// the events of child threads show the id of their parent's
// (kernel/events/core.c, primary_event_id), each counts for its own thread
// (PERF_SAMPLE_READ with inherit, Linux 6.12), and the thread tells them apart.
func (s *Session) instance(r *perfdata.Sample, th *Thread) *instance {
	e := r.Event
	id, hasID := sampleID(r)
	wide := s.PerCPU(e)
	if !wide && (e.Flags&perfdata.FlagInherit != 0 || !hasID) {
		return th.instance(e, id)
	}
	key := instanceKey{id: id}
	if !hasID {
		key = instanceKey{e, uint64(r.CPU)}
	}
	in := s.instances[key]
	if in == nil {
		in = &instance{id: id}
		s.instances[key] = in
	}
	return in
}

// sampleID returns the id of the event instance that was sampled. A group's
// leader reads itself first.
func sampleID(r *perfdata.Sample) (id uint64, ok bool) {
	if r.Has&(perfdata.FieldID|perfdata.FieldIdentifier) != 0 {
		return r.ID, true
	}
	if len(r.Counters) > 0 && r.Event.ReadFormat&perfdata.ReadID != 0 && isLeader(r.Event) {
		return r.Counters[0].ID, true
	}
	return 0, false
}

func isLeader(e *perfdata.Event) bool { return e.Leader == nil || e.Leader == e }

// noID marks numbers made up for events whose samples show no id. The kernel
// counts ids from 1.
const noID = 1 << 63

// instance returns the thread's own instance of an event, by id, or by the
// event itself where there are no ids.
func (th *Thread) instance(e *perfdata.Event, id uint64) *instance {
	if id == 0 {
		id = uint64(e.Index) | noID
	}
	for i, in := range th.instances {
		if in.id == id {
			if i > 8 { // events of many CPUs: keep the current one in front
				th.instances[0], th.instances[i] = in, th.instances[0]
			}
			return in
		}
	}
	in := &instance{id: id}
	th.instances = append(th.instances, in)
	return in
}

// interval computes the interval that ends with sample r in s.interval, and
// makes r the last tick of its instance. It returns nil if there is none.
func (s *Session) interval(r *perfdata.Sample, th *Thread) *Interval {
	in := s.instance(r, th)
	if in.thread != nil && in.thread != th {
		s.learnPerCPU(r.Event) // th does not own it, or it would have only one
	}
	v := &s.ival
	*v = Interval{Start: in.last, End: r.Time, Clock: r.Period, Counts: v.Counts[:0]}
	value, known := uint64(0), false
	if len(r.Counters) > 0 {
		value, known = s.difference(v, in, r)
	}
	s.offCPU(v, in, r, th)
	s.disturbances(v, in, r)
	if known {
		v.Overshoot = s.overshoot(v, in, r, value)
	}
	first := !in.ticked
	in.ticked, in.last, in.cpu = true, r.Time, r.CPU
	if first && len(r.Counters) == 0 {
		return nil
	}
	s.countInterval(v)
	return v
}

// difference sets the interval's counts from the counters read with r. It
// returns the value of the sampling event's own counter, and whether that and
// the differences are known.
func (s *Session) difference(v *Interval, in *instance, r *perfdata.Sample) (value uint64, known bool) {
	start := len(in.counters) == 0
	known = !start || s.countsFromZero(r)
	hasOwn := false
	own := s.ownCounter(r)
	var lost uint64
	for i, c := range r.Counters {
		last := in.counter(i, c.ID)
		if last.event == nil {
			last.event = s.counterEvent(r, i, c.ID)
		}
		d := c.Value - last.value
		if c.Value < last.value {
			v.Backwards, d = true, 0
		}
		if c.Lost > last.lost {
			lost += c.Lost - last.lost
		}
		if i == own && known {
			v.Clock, value, hasOwn = d, c.Value, true
		}
		if known {
			v.Counts = append(v.Counts, Count{last.event, d})
		}
		last.value, last.lost = c.Value, c.Lost
	}
	if known {
		v.Enabled, v.Running = forward(r.TimeEnabled, in.enabled), forward(r.TimeRunning, in.running)
		v.Lost = lost
	}
	in.enabled, in.running = r.TimeEnabled, r.TimeRunning
	if !known {
		s.stats.UnknownStarts++
	}
	return value, hasOwn
}

func forward(now, before uint64) uint64 {
	if now < before {
		return 0
	}
	return now - before
}

// counter returns the state of the counter read at position i, a new one if
// the last read did not have it.
func (in *instance) counter(i int, id uint64) *counter {
	if i < len(in.counters) && in.counters[i].id == id {
		return &in.counters[i]
	}
	if j := slices.IndexFunc(in.counters, func(c counter) bool { return c.id == id }); j >= 0 && id != 0 {
		return &in.counters[j]
	}
	in.counters = append(in.counters, counter{id: id})
	return &in.counters[len(in.counters)-1]
}

// ownCounter is the position of the sampling event among the counters read.
func (s *Session) ownCounter(r *perfdata.Sample) int {
	e := r.Event
	if len(r.Counters) == 1 || e.ReadFormat&perfdata.ReadGroup == 0 {
		return 0
	}
	if e.ReadFormat&perfdata.ReadID != 0 && r.Has&(perfdata.FieldID|perfdata.FieldIdentifier) != 0 {
		return slices.IndexFunc(r.Counters, func(c perfdata.Counter) bool { return c.ID == r.ID })
	}
	if e.Leader == nil {
		return 0
	}
	return slices.Index(e.Leader.Group, e)
}

// counterEvent says which event counter i of r belongs to: the one that has
// its id, else the member of the group in that place.
func (s *Session) counterEvent(r *perfdata.Sample, i int, id uint64) *perfdata.Event {
	e := r.Event
	if e.ReadFormat&perfdata.ReadID != 0 {
		if ev := s.events.byID(s.source.Meta(), id); ev != nil {
			return ev
		}
	}
	if i == 0 && isLeader(e) {
		return e
	}
	if e.Leader != nil && i < len(e.Leader.Group) {
		return e.Leader.Group[i]
	}
	return nil
}

// startSlack allows for what passes between an event's being enabled and the
// first record: its first period, at most a second in practice.
const startSlack = 1e9

// countsFromZero decides whether a counter's first read is the count since the
// recording began. Events start at 0 whether a program was started or attached
// to, so they do; unless the file is a later part of a longer recording (perf
// record --switch-output, --overwrite). Then time_enabled is longer than the
// time since the file's first record.
func (s *Session) countsFromZero(r *perfdata.Sample) bool {
	if r.Event.ReadFormat&perfdata.ReadTotalTimeEnabled == 0 || r.Has&perfdata.FieldTime == 0 {
		return true
	}
	return r.TimeEnabled <= r.Time-min(r.Time, s.firstTime)+startSlack
}

// offCPU sets the interval's scheduling times.
func (s *Session) offCPU(v *Interval, in *instance, r *perfdata.Sample, th *Thread) {
	if th.sched.state == unknownState && th.sched.lastIn == 0 {
		in.thread, in.waited, in.blocked = th, 0, 0
		return
	}
	waited, blockedFor := th.sched.offAt(r.Time)
	switch {
	case in.thread == th || !in.ticked:
		v.Waited, v.Blocked = waited-in.waited, blockedFor-in.blocked
	default:
		v.Waited = th.sched.lastWait.overlap(v.Start, v.End)
		v.Blocked = th.sched.lastBlock.overlap(v.Start, v.End)
	}
	if th.sched.lastIn > v.Start && th.sched.lastIn <= v.End {
		v.WaitedAtEnd = th.sched.waitBeforeIn
	}
	in.thread, in.waited, in.blocked = th, waited, blockedFor
}

// disturbances sets what makes the interval's counts less than they seem.
func (s *Session) disturbances(v *Interval, in *instance, r *perfdata.Sample) {
	lost := s.lost[lostKey(r.CPU)]
	if in.ticked && in.cpu == r.CPU {
		v.Lost += lost - in.lost
	}
	in.lost = lost
	v.Throttled = in.throttled || in.stopped
	in.throttled = false
}

func (s *Session) countInterval(v *Interval) {
	st := &s.stats
	st.Intervals++
	if v.Lost > 0 {
		st.LossyIntervals++
	}
	if v.Throttled {
		st.ThrottledIntervals++
	}
	if v.Multiplexed() {
		st.MultiplexedIntervals++
	}
	if v.Backwards {
		st.BackwardIntervals++
	}
}

// lostKey bounds the table of losses by CPU, whatever number is recorded.
func lostKey(cpu uint32) uint32 { return cpu % 65536 }

// lostRecords handles LOST and LOST_SAMPLES. A ring buffer belongs to a CPU, so
// what it loses is charged to the intervals of that CPU.
func (s *Session) lostRecords(c *perfdata.Common, n uint64) {
	s.lost[lostKey(c.CPU)] += n
}

// throttle handles THROTTLE and UNTHROTTLE of an event instance. In a recording
// without ids they concern every event of the thread, or of the CPU. An
// instance that has not ticked yet has no interval to mark.
func (s *Session) throttle(r *perfdata.Throttle) {
	stop := r.Type == perfdata.TypeThrottle
	if stop {
		s.stats.Throttles++
	} else {
		s.stats.Unthrottles++
	}
	if in := s.instances[instanceKey{id: r.ThrottleID}]; in != nil {
		in.throttled, in.stopped = true, stop
		return
	}
	if r.Has&perfdata.FieldTID != 0 {
		if th := s.threads.byTID[r.TID]; th != nil {
			for _, in := range th.instances {
				if in.id == r.ThrottleID || in.id&noID != 0 {
					in.throttled, in.stopped = true, stop
				}
			}
		}
	}
	if r.Has&perfdata.FieldCPU != 0 {
		for _, e := range s.source.Meta().Events {
			if in := s.instances[instanceKey{e, uint64(r.CPU)}]; in != nil {
				in.throttled, in.stopped = true, stop
			}
		}
	}
}
