package correct

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/session"
)

// selection decides which event's samples make the profile and keeps their
// stacks: what all methods that weigh stacks have in common. Samples of
// different events count different things and must not be added up.
type selection struct {
	want               string // name asked for, "" for the first
	labelPID, labelTID bool
	counters           []*perfdata.Event // of calls: their own samples are second choice

	event  *perfdata.Event // chosen so far
	stacks *graph.Stacks
	used   int64
	period float64          // sum, in the event's unit
	unused map[string]int64 // by name of the event
}

func newSelection(opt Options, counters []*perfdata.Event) selection {
	return selection{
		want: opt.Event, labelPID: opt.LabelPID, labelTID: opt.LabelTID, counters: counters,
		stacks: graph.NewStacks(), unused: map[string]int64{},
	}
}

// choice is what take decided.
type choice uint8

const (
	leave   choice = iota // not of the profile's event; counted
	use                   // one of it
	restart               // the first of a better event: what was used before is to be forgotten
)

// take decides about a sample and counts it.
func (s *selection) take(sm *session.Sample) choice {
	c := use
	if sm.Event == nil || sm.Event != s.event && !sameEvent(sm.Event, s.event) {
		if !s.better(sm.Event, s.event) {
			s.unused[eventName(sm.Event)]++
			return leave
		}
		if s.event != nil {
			s.forget()
			c = restart
		}
		s.event = sm.Event
	}
	s.used++
	s.period += float64(sm.Period)
	return c
}

// forget counts all that was used as unused.
func (s *selection) forget() {
	if s.used > 0 {
		s.unused[eventName(s.event)] += s.used
	}
	s.used, s.period = 0, 0
	s.stacks = graph.NewStacks()
}

// add adds a sample's stack and returns its index.
func (s *selection) add(sm *session.Sample, calls float64) int {
	l := graph.Label{Comm: sm.Thread.Comm}
	if s.labelPID {
		l.PID = sm.Thread.PID
	}
	if s.labelTID {
		l.TID = sm.Thread.TID
	}
	return s.stacks.Add(l, sm.Stack, graph.Values{Samples: 1, Event: float64(sm.Period), Calls: calls})
}

// better reports whether samples of event a are to be preferred to those of b,
// nil being no event yet. Of the events with samples it is the one asked for,
// or else the first in the recording, where a call counter, a tracepoint and,
// last of all, the scheduler's tracepoints, which are recorded for the sake of
// the others, come after what ticks.
func (s *selection) better(a, b *perfdata.Event) bool {
	ra := s.rank(a)
	if ra == never {
		return false
	}
	if b == nil {
		return true
	}
	return cmp.Or(cmp.Compare(ra, s.rank(b)), cmp.Compare(a.Index, b.Index)) < 0
}

const never = 9

func (s *selection) rank(e *perfdata.Event) int {
	switch {
	case e == nil:
		return never
	case s.want != "":
		if e.Name == s.want || bareName(e.Name) == s.want {
			return 0
		}
		return never
	case e.Type == perfdata.TypeSoftware && (e.Config == perfdata.SWDummy || e.Config == perfdata.SWBPFOutput):
		return never
	case strings.HasPrefix(e.Name, "sched:"):
		return 3
	case e.Type == perfdata.TypeTracepoint:
		return 2
	case slices.ContainsFunc(s.counters, func(c *perfdata.Event) bool { return sameEvent(c, e) }):
		return 1
	}
	return 0
}

// merge takes over what o has. It returns how: use if both are of the same
// event, restart if o's event is better, leave if it is not.
func (s *selection) merge(o *selection) choice {
	for name, n := range o.unused {
		s.unused[name] += n
	}
	switch {
	case o.event == nil:
		return leave
	case s.event == nil || sameEvent(s.event, o.event):
	case s.better(o.event, s.event):
		s.forget()
		s.event, s.used, s.period = o.event, o.used, o.period
		return restart
	default:
		s.unused[eventName(o.event)] += o.used
		return leave
	}
	if s.event == nil {
		s.event = o.event
	}
	s.used += o.used
	s.period += o.period
	return use
}

// result fills in what does not depend on the method.
func (s *selection) result(method string) *Result {
	r := &Result{Method: method, Event: s.event, Stacks: s.stacks, Used: s.used}
	if s.used > 0 {
		r.Period = uint64(s.period/float64(s.used) + 0.5)
	}
	for _, name := range slices.Sorted(maps.Keys(s.unused)) {
		r.Unused = append(r.Unused, Unused{name, s.unused[name]})
	}
	if s.used == 0 && s.want != "" {
		r.Warnings = append(r.Warnings, "no samples of event "+s.want)
	}
	r.DCG = func(res graph.Resolver) *graph.DCG { return graph.LeafEdges(r.Stacks, res) }
	return r
}

// sameEvent reports whether two events count the same: the same one, one of
// another recording with the same name, or the same event of the other kind of
// core of a hybrid CPU, which has its own attr with the PMU in the upper half
// of config (PERF_PMU_TYPE_SHIFT).
func sameEvent(a, b *perfdata.Event) bool {
	switch {
	case a == nil || b == nil:
		return a == b
	case a == b:
		return true
	case a.Type == perfdata.TypeHardware && b.Type == perfdata.TypeHardware:
		return uint32(a.Config) == uint32(b.Config)
	}
	return a.Name != "" && a.Name == b.Name
}

func eventName(e *perfdata.Event) string {
	if e == nil {
		return "unknown event"
	}
	return e.Name
}

// bareName is an event's name without PMU and modifiers:
// "cpu_core/cycles/u" and "cycles:u" are "cycles".
func bareName(name string) string {
	if pmu, rest, ok := strings.Cut(name, "/"); ok && !strings.Contains(pmu, ":") {
		if inner, _, ok := strings.Cut(rest, "/"); ok {
			return inner
		}
	}
	if i := strings.LastIndexByte(name, ':'); i > 0 && strings.Trim(name[i+1:], "ukhHGIpPSDWeb") == "" {
		return name[:i]
	}
	return name
}
