package session

import (
	"reflect"
	"testing"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// newGroup has a group of two events, {clock, calls}:S, with ids 101, 102 on
// CPU 0 and 201, 202 on CPU 1, and a third event outside, id 300.
func newGroup(flags perfdata.AttrFlags) *feed {
	attr := perfdata.Attr{
		Type: perfdata.TypeHardware, SamplePeriod: 1000, Flags: flags,
		SampleType: perfdata.FieldIdentifier | perfdata.FieldRead,
		ReadFormat: perfdata.ReadGroup | perfdata.ReadID | perfdata.ReadTotalTimeEnabled | perfdata.ReadTotalTimeRunning | perfdata.ReadLost,
	}
	clock := &perfdata.Event{Name: "cycles", Attr: attr, IDs: []uint64{101, 201}}
	calls := &perfdata.Event{Name: "calls", Attr: attr, Index: 1, IDs: []uint64{102, 202}, Leader: clock}
	other := &perfdata.Event{Name: "other", Attr: attr, Index: 2, IDs: []uint64{300}}
	clock.Leader, clock.Group = clock, []*perfdata.Event{clock, calls}
	other.Leader = other
	f := newFeed()
	f.meta.Events = []*perfdata.Event{clock, calls, other}
	return f
}

// read makes a sample of the group with two counter values.
func (f *feed) read(time uint64, tid int32, cpu uint32, clock, calls uint64) *perfdata.Sample {
	s := on(cpu, at(time, 1, tid, tick(0x1000)))
	s.Event = f.meta.Events[0]
	base := 100 * (uint64(cpu) + 1)
	s.ID = base + 1
	s.Has |= perfdata.FieldIdentifier | perfdata.FieldRead
	s.Counters = []perfdata.Counter{{ID: base + 1, Value: clock}, {ID: base + 2, Value: calls}}
	f.records = append(f.records, s)
	return s
}

type summary struct{ start, end, clock, calls, overshoot uint64 }

func summaries(t *testing.T, got []kept) []summary {
	t.Helper()
	var all []summary
	for _, k := range got {
		v := k.interval
		if v == nil {
			all = append(all, summary{})
			continue
		}
		s := summary{start: v.Start, end: v.End, clock: v.Clock, overshoot: v.Overshoot}
		if len(v.Counts) == 2 {
			s.calls = v.Counts[1].Value
			if v.Counts[0].Value != v.Clock || v.Counts[0].Event.Name != "cycles" || v.Counts[1].Event.Name != "calls" {
				t.Errorf("interval %+v", v)
			}
		}
		all = append(all, s)
	}
	return all
}

func expectIntervals(t *testing.T, got []kept, want ...summary) {
	t.Helper()
	if s := summaries(t, got); !reflect.DeepEqual(s, want) {
		t.Errorf("intervals\n%+v, want\n%+v", s, want)
	}
}

// TestDifferencesPerID: a thread moves between CPUs; each has its own counters.
func TestDifferencesPerID(t *testing.T) {
	f := newGroup(0)
	f.read(10, 1, 0, 1005, 50)
	f.read(20, 1, 1, 1100, 7)
	f.read(30, 1, 0, 2003, 60)
	f.read(40, 1, 1, 2100, 107)
	got, s := run(t, f)
	expectIntervals(t, got,
		summary{0, 10, 1005, 50, 5}, summary{0, 20, 1100, 7, 100},
		summary{10, 30, 998, 10, 3}, summary{20, 40, 1000, 100, 100})
	if st := s.Stats(); st.Intervals != 4 || st.BackwardIntervals != 0 || st.Events[0].Reads != 4 {
		t.Errorf("%+v", st)
	}
}

// TestInheritedReads: with inherit one id stands for the counters of all
// threads, each of which started at 0.
func TestInheritedReads(t *testing.T) {
	f := newGroup(perfdata.FlagInherit)
	f.read(10, 1, 0, 5000, 500)
	f.read(20, 2, 0, 1000, 7)
	f.read(30, 1, 0, 6000, 600)
	f.read(40, 2, 0, 2001, 9)
	got, _ := run(t, f)
	expectIntervals(t, got,
		summary{0, 10, 5000, 500, 0}, summary{0, 20, 1000, 7, 0},
		summary{10, 30, 1000, 100, 0}, summary{20, 40, 1001, 2, 1})
}

// TestSystemWideReads: the counters of a CPU go on whoever runs, even if perf
// has set inherit.
func TestSystemWideReads(t *testing.T) {
	f := newGroup(perfdata.FlagInherit)
	f.meta.Cmdline = []string{"perf", "record", "-a"}
	f.read(10, 1, 0, 5000, 500)
	f.read(20, 2, 0, 6001, 507)
	got, s := run(t, f)
	expectIntervals(t, got, summary{0, 10, 5000, 500, 0}, summary{10, 20, 1001, 7, 1})
	if e := f.meta.Events[0]; ClockOf(e, s.PerCPU(e)) != CPUClock {
		t.Error("not a clock of CPUs")
	}
}

func TestCounterGoesBackwards(t *testing.T) {
	f := newGroup(0)
	f.read(10, 1, 0, 1000, 500)
	f.read(20, 1, 0, 2000, 400)
	f.read(30, 1, 0, 3000, 450)
	got, s := run(t, f)
	expectIntervals(t, got, summary{0, 10, 1000, 500, 0}, summary{10, 20, 1000, 0, 0}, summary{20, 30, 1000, 50, 0})
	if !got[1].interval.Backwards || got[2].interval.Backwards || s.Stats().BackwardIntervals != 1 {
		t.Error("not marked")
	}
}

func TestTimesAndMultiplexing(t *testing.T) {
	f := newGroup(0)
	for i, c := range []struct{ enabled, running uint64 }{{100, 100}, {250, 200}, {300, 250}} {
		r := f.read(uint64(10*i+10), 1, 0, uint64(i)*1000, 0)
		r.TimeEnabled, r.TimeRunning = c.enabled, c.running
	}
	got, s := run(t, f)
	for i, want := range [][2]uint64{{100, 100}, {150, 100}, {50, 50}} {
		if v := got[i].interval; v.Enabled != want[0] || v.Running != want[1] || v.Multiplexed() != (i == 1) {
			t.Errorf("interval %d: %+v", i, v)
		}
	}
	if s.Stats().MultiplexedIntervals != 1 {
		t.Errorf("%+v", s.Stats())
	}
}

// TestLaterPartOfRecording: the counters had run for a minute when the file
// began, so the first read is no difference.
func TestLaterPartOfRecording(t *testing.T) {
	f := newGroup(0)
	const minute = 60e9
	f.read(5e9, 1, 0, 7e9, 500).TimeEnabled = minute
	f.read(5e9+1000, 1, 0, 7e9+1000, 510).TimeEnabled = minute + 1000
	got, s := run(t, f)
	v := got[0].interval
	if len(v.Counts) != 0 || v.Clock != 1000 || v.Enabled != 0 || s.Stats().UnknownStarts != 1 {
		t.Errorf("first interval %+v, %+v", v, s.Stats())
	}
	if v := got[1].interval; v.Clock != 1000 || v.Counts[1].Value != 10 || v.Enabled != 1000 {
		t.Errorf("second interval %+v", v)
	}
}

// TestMembersSample: events of one group that both sample have intervals of
// their own.
func TestMembersSample(t *testing.T) {
	f := newGroup(0)
	f.read(10, 1, 0, 1000, 5)
	r := f.read(15, 1, 0, 1500, 7)
	r.Event, r.ID = f.meta.Events[1], 102
	f.read(20, 1, 0, 2000, 9)
	r = f.read(25, 1, 0, 2500, 12)
	r.Event, r.ID = f.meta.Events[1], 102
	got, _ := run(t, f)
	for i, want := range []struct{ start, clock, cycles, calls uint64 }{
		{0, 1000, 1000, 5}, {0, 7, 1500, 7}, {10, 1000, 1000, 4}, {15, 5, 1000, 5},
	} {
		v := got[i].interval
		if v.Start != want.start || v.Clock != want.clock || v.Counts[0].Value != want.cycles || v.Counts[1].Value != want.calls {
			t.Errorf("interval %d: %+v, want %+v", i, v, want)
		}
	}
	if n, ok := got[2].interval.Count(f.meta.Events[1]); !ok || n != 4 {
		t.Errorf("calls: %d, %v", n, ok)
	}
}

// TestReadsWithoutID: members are known by their place in the group.
func TestReadsWithoutID(t *testing.T) {
	f := newGroup(perfdata.FlagInherit)
	for _, e := range f.meta.Events {
		e.ReadFormat = perfdata.ReadGroup
	}
	for i := range uint64(2) {
		r := f.read(10+i, 1, 0, 1000*(i+1), 5*(i+1))
		r.Has &^= perfdata.FieldIdentifier
		r.ID, r.Counters[0].ID, r.Counters[1].ID = 0, 0, 0
	}
	got, _ := run(t, f)
	expectIntervals(t, got, summary{0, 10, 1000, 5, 0}, summary{10, 11, 1000, 5, 0})
}

func TestIntervalsWithoutReads(t *testing.T) {
	got, _ := run(t, newFeed(
		at(10, 1, 1, tick(0x1000)),
		at(30, 1, 2, tick(0x1000)),
		at(40, 1, 1, tick(0x1000)),
	))
	if got[0].interval != nil || got[1].interval != nil {
		t.Errorf("first ticks have intervals: %+v", got)
	}
	if v := got[2].interval; v == nil || v.Start != 10 || v.End != 40 || v.Clock != 1000 || len(v.Counts) != 0 {
		t.Errorf("%+v", v)
	}
}

func lost(n uint64) *perfdata.Lost { return &perfdata.Lost{Count: n} }

func throttle(stop bool, id uint64) *perfdata.Throttle {
	r := &perfdata.Throttle{ThrottleID: id}
	r.Type = perfdata.TypeUnthrottle
	if stop {
		r.Type = perfdata.TypeThrottle
	}
	return r
}

func TestLostMarksTheCPUsIntervals(t *testing.T) {
	f := newGroup(0)
	f.read(10, 1, 0, 1000, 5)
	f.read(11, 1, 1, 1000, 5)
	f.records = append(f.records, on(0, at(12, 1, 1, lost(3))))
	f.records = append(f.records, on(0, at(13, 1, 1, &perfdata.LostSamples{Count: 2})))
	f.read(20, 1, 0, 2000, 10)
	f.read(21, 1, 1, 2000, 10)
	f.read(30, 1, 0, 3000, 15)
	got, s := run(t, f)
	for i, want := range []uint64{0, 0, 5, 0, 0} {
		if v := got[i].interval; v.Lost != want {
			t.Errorf("interval %d: lost %d, want %d", i, v.Lost, want)
		}
	}
	if st := s.Stats(); st.LostRecords != 3 || st.LostSamples != 2 || st.LossyIntervals != 1 {
		t.Errorf("%+v", st)
	}
}

func TestReadLost(t *testing.T) {
	f := newGroup(0)
	f.read(10, 1, 0, 1000, 5).Counters[0].Lost = 4
	f.read(20, 1, 0, 2000, 5).Counters[0].Lost = 4
	f.read(30, 1, 0, 3000, 5).Counters[0].Lost = 6
	got, _ := run(t, f)
	for i, want := range []uint64{4, 0, 2} {
		if v := got[i].interval; v.Lost != want {
			t.Errorf("interval %d: lost %d, want %d", i, v.Lost, want)
		}
	}
}

func TestThrottleMarksIntervals(t *testing.T) {
	f := newGroup(0)
	f.read(10, 1, 0, 1000, 5)
	f.read(11, 1, 1, 1000, 5)
	f.records = append(f.records, at(12, 1, 1, throttle(true, 101)))
	f.read(20, 1, 0, 2000, 10)
	f.read(30, 1, 0, 3000, 15)
	f.records = append(f.records, at(32, 1, 1, throttle(false, 101)))
	f.read(40, 1, 0, 4000, 20)
	f.read(50, 1, 0, 5000, 25)
	f.read(60, 1, 1, 5000, 25)
	got, s := run(t, f)
	for i, want := range []bool{false, false, true, true, true, false, false} {
		if v := got[i].interval; v.Throttled != want {
			t.Errorf("interval %d: throttled %v", i, v.Throttled)
		}
	}
	if st := s.Stats(); st.Throttles != 1 || st.Unthrottles != 1 || st.ThrottledIntervals != 3 {
		t.Errorf("%+v", st)
	}
}

func TestThrottleOfThread(t *testing.T) {
	f := newFeed(
		at(1, 1, 1, tick(0x1000)),
		at(1, 1, 2, tick(0x1000)),
		at(2, 1, 1, throttle(true, 9)), // an id the samples do not show
		at(3, 1, 1, tick(0x1000)),
		at(3, 1, 2, tick(0x1000)),
	)
	got, _ := run(t, f)
	if !got[2].interval.Throttled || got[3].interval.Throttled {
		t.Errorf("%+v %+v", got[2].interval, got[3].interval)
	}
}

func TestClockOf(t *testing.T) {
	for _, c := range []struct {
		name   string
		perCPU bool
		want   ClockKind
	}{
		{"cycles:u", false, ThreadClock}, {"cpu-clock", true, CPUClock}, {"wall-clock", false, WallClock},
	} {
		if got := ClockOf(&perfdata.Event{Name: c.name}, c.perCPU); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if ClockOf(nil, false) != ThreadClock {
		t.Error("no event")
	}
}
