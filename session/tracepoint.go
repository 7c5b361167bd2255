package session

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// tracepoint is a scheduler tracepoint whose samples say when threads run.
type tracepoint uint8

const (
	noTracepoint tracepoint = iota
	schedSwitch             // prev_pid, prev_state, next_pid
	schedWake               // sched_waking, sched_wakeup, sched_wakeup_new: pid
)

var tracepointNames = map[string]tracepoint{
	"sched_switch": schedSwitch,
	"sched_waking": schedWake,
	"sched_wakeup": schedWake,
	// A new thread is runnable from its FORK on, but that may not be recorded.
	"sched_wakeup_new": schedWake,
}

// field is where a tracepoint's raw data holds a number.
type field struct{ offset, size int }

// get reads the field; ok is false if the data ends before it.
func (f field) get(raw []byte, order binary.ByteOrder) (v uint64, ok bool) {
	if f.offset+f.size > len(raw) {
		return 0, false
	}
	raw = raw[f.offset:]
	switch f.size {
	case 4:
		return uint64(order.Uint32(raw)), true
	case 8:
		return order.Uint64(raw), true
	}
	return 0, false
}

// layout says where the fields of a scheduler tracepoint are.
type layout struct {
	kind                     tracepoint
	prevPID, prevState, next field
	pid                      field
}

// fixedLayout is that of 64-bit kernels (include/trace/events/sched.h: 8 bytes
// common, comm[16], pid, prio ...), unchanged since 2.6.32.
func fixedLayout(kind tracepoint) layout {
	return layout{
		kind:    kind,
		prevPID: field{24, 4}, prevState: field{32, 8}, next: field{56, 4},
		pid: field{24, 4},
	}
}

// layoutOf returns the layout of an event's samples, kind noTracepoint if it
// is no scheduler tracepoint. The format in tracing data counts; without it
// the event's name must say.
func layoutOf(e *perfdata.Event, tracing []byte) layout {
	if e.Type != perfdata.TypeTracepoint {
		return layout{}
	}
	if system, name, ok := strings.Cut(e.Name, ":"); ok {
		kind := tracepointNames[name]
		if system != "sched" || kind == noTracepoint {
			return layout{}
		}
		if text := formatByName(tracing, name); text != nil {
			return parseFormat(kind, text)
		}
		return fixedLayout(kind)
	}
	for name, kind := range tracepointNames {
		if text := formatByName(tracing, name); text != nil && formatID(text) == e.Config {
			return parseFormat(kind, text)
		}
	}
	return layout{}
}

// formatByName finds the text of a tracepoint's format file in TRACING_DATA
// (Documentation/trace/events.rst), without its print format.
func formatByName(tracing []byte, name string) []byte {
	_, text, ok := bytes.Cut(tracing, []byte("name: "+name+"\nID: "))
	if !ok {
		return nil
	}
	text, _, _ = bytes.Cut(text, []byte("\nprint fmt"))
	return text
}

func formatID(text []byte) uint64 {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	id, err := strconv.ParseUint(string(line), 10, 64)
	if err != nil {
		return ^uint64(0)
	}
	return id
}

// parseFormat reads lines like
//
//	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;
func parseFormat(kind tracepoint, text []byte) layout {
	l := fixedLayout(kind)
	for line := range strings.Lines(string(text)) {
		decl, rest, ok := strings.Cut(strings.TrimSpace(line), ";")
		if !ok {
			continue
		}
		at := field{offset: attribute(rest, "offset:"), size: attribute(rest, "size:")}
		if at.offset < 0 || at.size < 0 {
			continue
		}
		switch decl[strings.LastIndexByte(decl, ' ')+1:] {
		case "prev_pid":
			l.prevPID = at
		case "prev_state":
			l.prevState = at
		case "next_pid":
			l.next = at
		case "pid":
			l.pid = at
		}
	}
	return l
}

// attribute reads a number like that of "offset:24;", -1 if it is not there or
// wild.
func attribute(s, name string) int {
	_, s, ok := strings.Cut(s, name)
	if !ok {
		return -1
	}
	s, _, _ = strings.Cut(s, ";")
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return -1
	}
	return int(n)
}

// taskReport are the bits of prev_state that say the thread cannot run. A
// preempted thread is shown as 0 or, above all states, as TASK_REPORT_MAX
// (include/linux/sched.h; TASK_STATE_MAX before 4.14).
const taskReport = 0xff

// tracepointSample lets a scheduler tracepoint change the states of the
// threads it names. Only known threads: it sees the whole machine.
func (s *Session) tracepointSample(l *layout, r *perfdata.Sample) {
	order := s.source.Meta().ByteOrder
	if order == nil {
		order = binary.LittleEndian
	}
	if l.kind == schedWake {
		if pid, ok := l.pid.get(r.Raw, order); ok && pid != 0 {
			if th := s.threads.byTID[int32(pid)]; th != nil && th.sched.wake(r.Time) {
				s.stats.Wakeups++
			}
		}
		return
	}
	prev, ok1 := l.prevPID.get(r.Raw, order)
	state, ok2 := l.prevState.get(r.Raw, order)
	next, ok3 := l.next.get(r.Raw, order)
	if !ok1 || !ok2 || !ok3 {
		return
	}
	if th := s.threads.byTID[int32(prev)]; th != nil && prev != 0 {
		s.countOut(th, r.Time, state&taskReport == 0)
	}
	if th := s.threads.byTID[int32(next)]; th != nil && next != 0 {
		s.countIn(th, r.Time)
	}
}
