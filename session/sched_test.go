package session

import (
	"encoding/binary"
	"testing"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

func switchIn(time uint64, tid int32) *perfdata.Switch {
	r := &perfdata.Switch{NextPrevPID: -1, NextPrevTID: -1}
	r.Type = perfdata.TypeSwitch
	return at(time, 1, tid, r)
}

func switchOut(time uint64, tid int32, preempted bool) *perfdata.Switch {
	r := switchIn(time, tid)
	r.Misc = perfdata.MiscSwitchOut
	if preempted {
		r.Misc |= perfdata.MiscSwitchOutPreempt
	}
	return r
}

// off is what an interval says of time off the CPU.
type off struct{ waited, blocked, atEnd uint64 }

func expectOff(t *testing.T, got []kept, want ...any) {
	t.Helper()
	for i, w := range want {
		v := got[i].interval
		if w == nil {
			if v != nil {
				t.Errorf("sample %d has interval %+v", i, v)
			}
			continue
		}
		if v == nil {
			t.Fatalf("sample %d has no interval", i)
		}
		if g := (off{v.Waited, v.Blocked, v.WaitedAtEnd}); g != w.(off) {
			t.Errorf("interval %d (%d, %d]: %+v, want %+v", i, v.Start, v.End, g, w)
		}
	}
}

func TestSwitches(t *testing.T) {
	got, s := run(t, newFeed(
		switchIn(100, 1),
		at(200, 1, 1, tick(1)),
		switchOut(300, 1, true), // preempted for 50
		switchIn(350, 1),
		at(400, 1, 1, tick(1)), // waited 50, 50 before it ran
		switchOut(450, 1, false),
		switchIn(650, 1), // blocked 200
		switchOut(700, 1, true),
		switchIn(730, 1), // waited 30
		switchOut(740, 1, true),
		switchIn(747, 1), // waited 7
		at(800, 1, 1, tick(1)),
		at(900, 1, 1, tick(1)), // ran all the time
		switchOut(910, 1, true),
		switchIn(920, 1),
		switchOut(930, 1, false),
		switchIn(960, 1),
		at(999, 1, 1, tick(1)), // waited 10, but not before it ran last
	))
	expectOff(t, got, nil, off{50, 0, 50}, off{37, 200, 7}, off{}, off{10, 30, 0})
	if st := s.Stats(); st.SwitchesOut != 6 || st.Preempted != 4 || st.SwitchesIn != 7 || st.MissedSwitches != 0 {
		t.Errorf("%+v", st)
	}
}

// TestNewThreadWaits: from FORK on it is runnable.
func TestNewThreadWaits(t *testing.T) {
	f := newFeed(
		at(50, 1, 1, comm(1, 1, "a")),
		at(100, 1, 1, fork(1, 1, 1, 2)),
		switchIn(130, 2),
		at(200, 1, 2, tick(1)),
		at(300, 1, 2, tick(1)),
	)
	got, _ := run(t, f)
	expectOff(t, got, nil, off{})
	f.records = f.records[:len(f.records)-2]
	r := at(200, 1, 2, tick(1))
	r.Event = f.meta.Events[0]
	r.Counters = []perfdata.Counter{{Value: 1000}}
	f.records = append(f.records, r)
	got, _ = run(t, f)
	expectOff(t, got, off{30, 0, 30})
}

// schedEvent adds a scheduler tracepoint to a recording.
func (f *feed) schedEvent(name string) *perfdata.Event {
	e := &perfdata.Event{Name: name, Index: len(f.meta.Events)}
	e.Type, e.Config, e.Flags = perfdata.TypeTracepoint, uint64(300+e.Index), perfdata.FlagInherit
	f.meta.Events = append(f.meta.Events, e)
	return e
}

func switchRaw(prev int32, state uint64, next int32) []byte {
	raw := make([]byte, 64)
	binary.LittleEndian.PutUint32(raw[24:], uint32(prev))
	binary.LittleEndian.PutUint64(raw[32:], state)
	binary.LittleEndian.PutUint32(raw[56:], uint32(next))
	return raw
}

func wakeRaw(pid int32) []byte {
	raw := make([]byte, 36)
	binary.LittleEndian.PutUint32(raw[24:], uint32(pid))
	return raw
}

func (f *feed) add(time uint64, tid int32, e *perfdata.Event, raw []byte) {
	r := at(time, 1, tid, tick(1))
	r.Event, r.Raw = e, raw
	f.records = append(f.records, r)
}

// TestSchedTracepoints: thread 1 is preempted, waits, runs, sleeps, is woken
// by thread 2 and waits again.
func TestSchedTracepoints(t *testing.T) {
	f := newFeed(at(1, 1, 1, comm(1, 1, "a")), at(1, 1, 1, comm(1, 2, "b")))
	clock, sw, wake := f.meta.Events[0], f.schedEvent("sched:sched_switch"), f.schedEvent("sched:sched_waking")
	f.add(100, 1, clock, nil)
	f.add(200, 1, sw, switchRaw(1, 0x100, 2)) // TASK_REPORT_MAX: preempted
	f.add(260, 2, sw, switchRaw(2, 0, 1))
	f.add(300, 1, clock, nil)             // waited 60
	f.add(400, 1, sw, switchRaw(1, 1, 2)) // sleeps
	f.add(500, 2, wake, wakeRaw(1))       // blocked 100
	f.add(501, 2, wake, wakeRaw(1))       // nothing new
	f.add(502, 2, wake, wakeRaw(77))      // nobody we know
	f.add(530, 2, sw, switchRaw(2, 2, 1)) // waited 30
	f.add(600, 1, clock, nil)
	got, s := run(t, f)
	expectOff(t, []kept{got[0], got[3], got[9]}, nil, off{60, 0, 60}, off{30, 100, 30})
	st := s.Stats()
	if st.SwitchesOut != 4 || st.SwitchesIn != 4 || st.Preempted != 2 || st.Wakeups != 1 || st.MissedSwitches != 0 {
		t.Errorf("%+v", st)
	}
}

// TestFormatOfTracingData: a kernel with other offsets (as in
// /sys/kernel/tracing/events/sched/sched_switch/format), found by id.
func TestFormatOfTracingData(t *testing.T) {
	f := newFeed(at(1, 1, 1, comm(1, 1, "a")))
	sw := f.schedEvent("")
	f.meta.TracingData = []byte("\x17\x08\x44tracing...name: sched_wakeup\nID: 300\nformat:\n\n\nprint fmt\n" +
		"name: sched_switch\nID: 301\nformat:\n" +
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n" +
		"\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n" +
		"\tfield:pid_t prev_pid;\toffset:4;\tsize:4;\tsigned:1;\n" +
		"\tfield:long prev_state;\toffset:24;\tsize:4;\tsigned:1;\n" +
		"\tfield:pid_t next_pid;\toffset:28;\tsize:4;\tsigned:1;\n\nprint fmt: \"prev_pid=%d\", REC->pid\n")
	raw := make([]byte, 32)
	raw[4], raw[24], raw[28] = 1, 1, 9
	f.add(100, 1, f.meta.Events[0], nil)
	f.add(200, 1, sw, raw)
	raw = make([]byte, 32)
	raw[4], raw[28] = 9, 1
	f.add(290, 9, sw, raw)
	f.add(300, 1, f.meta.Events[0], nil)
	got, _ := run(t, f)
	expectOff(t, []kept{got[3]}, off{0, 90, 0})
	l := layoutOf(sw, f.meta.TracingData)
	if l.prevPID != (field{4, 4}) || l.prevState != (field{24, 4}) || l.next != (field{28, 4}) {
		t.Errorf("%+v", l)
	}
}

func TestWildFormats(t *testing.T) {
	e := &perfdata.Event{Name: "sched:sched_switch"}
	e.Type = perfdata.TypeTracepoint
	for _, text := range []string{
		"", "name: sched_switch\nID: ", "name: sched_switch\nID: 3\n\tfield:pid_t prev_pid;\toffset:99999999999;\tsize:4;\n",
		"name: sched_switch\nID: 3\n\tfield:pid_t prev_pid;\toffset:-4;\tsize:4;\n", "name: sched_switch\nID: 3\n;;;;\noffset:3;size:3",
	} {
		l := layoutOf(e, []byte(text))
		if l != fixedLayout(schedSwitch) {
			t.Errorf("%q: %+v", text, l)
		}
		if _, ok := l.next.get(make([]byte, 59), binary.LittleEndian); ok {
			t.Error("read past the end")
		}
	}
}

// TestMissedSwitchIn: a sample of a thread that should be off the CPU. How long
// it was is not known, unless the switch in comes after all.
func TestMissedSwitchIn(t *testing.T) {
	got, s := run(t, newFeed(
		switchIn(100, 1),
		at(200, 1, 1, tick(1)),
		switchOut(300, 1, true),
		at(500, 1, 1, tick(1)),
		switchOut(600, 1, true),
		at(601, 1, 1, tick(1)), // an interrupt on the way out
		switchIn(700, 1),
		at(800, 1, 1, tick(1)),
	))
	expectOff(t, got, nil, off{}, off{}, off{100, 0, 100})
	if n := s.Stats().MissedSwitches; n != 2 {
		t.Errorf("%d missed", n)
	}
}

// TestSwitchToldTwice: by a tracepoint and a record.
func TestSwitchToldTwice(t *testing.T) {
	f := newFeed(at(1, 1, 1, comm(1, 1, "a")))
	sw := f.schedEvent("sched:sched_switch")
	f.add(100, 1, f.meta.Events[0], nil)
	f.add(200, 1, sw, switchRaw(1, 0x100, 0))
	f.records = append(f.records, switchOut(201, 1, false))
	f.add(300, 0, sw, switchRaw(0, 0, 1))
	f.records = append(f.records, switchIn(301, 1))
	f.add(400, 1, f.meta.Events[0], nil)
	got, s := run(t, f)
	expectOff(t, []kept{got[3]}, off{100, 0, 100})
	if st := s.Stats(); st.SwitchesOut != 1 || st.SwitchesIn != 1 || st.Preempted != 1 {
		t.Errorf("%+v", st)
	}
}

// TestPerCPUIntervals: the tick before was another thread's.
func TestPerCPUIntervals(t *testing.T) {
	f := newFeed()
	f.meta.Cmdline = []string{"perf", "record", "-a"}
	for _, r := range []perfdata.Record{
		switchIn(50, 1), switchOut(90, 1, false),
		on(0, at(100, 1, 2, tick(1))),
		switchIn(120, 1), switchOut(130, 1, true), switchIn(170, 1),
		on(0, at(200, 1, 1, tick(1))),
	} {
		if s, ok := r.(*perfdata.Sample); ok {
			s.Event = f.meta.Events[0]
		}
		f.records = append(f.records, r)
	}
	got, _ := run(t, f)
	expectOff(t, got, nil, off{40, 20, 40}) // blocked 90..120, of that 20 in (100, 200]
}
