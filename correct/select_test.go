package correct

import (
	"reflect"
	"testing"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/session"
)

var (
	dummy   = &perfdata.Event{Name: "dummy:u", Attr: perfdata.Attr{Type: perfdata.TypeSoftware, Config: perfdata.SWDummy}}
	switchE = &perfdata.Event{Name: "sched:sched_switch", Index: 1, Attr: perfdata.Attr{Type: perfdata.TypeTracepoint, Config: 300}}
	core    = &perfdata.Event{Name: "cpu_core/cycles/u", Index: 2, Attr: perfdata.Attr{Config: 4 << 32}}
	atom    = &perfdata.Event{Name: "cpu_atom/cycles/u", Index: 3, Attr: perfdata.Attr{Config: 10 << 32}}
	instr   = &perfdata.Event{Name: "instructions", Index: 4, Attr: perfdata.Attr{Config: 1}}
)

func feed(e Estimator, events ...*perfdata.Event) Estimator {
	for i, ev := range events {
		e.Add(&session.Sample{
			Thread: &session.Thread{PID: 7, TID: 8, Comm: "c"}, Event: ev, Period: 10, Stack: []image.Loc{image.Loc(i)},
		})
	}
	return e
}

func TestSelection(t *testing.T) {
	for name, c := range map[string]struct {
		want   string
		feed   []*perfdata.Event
		event  *perfdata.Event
		used   int64
		unused []Unused
	}{
		"first by index, whatever comes first": {
			feed:  []*perfdata.Event{switchE, instr, instr, core, instr, core},
			event: core, used: 2, unused: []Unused{{"instructions", 3}, {"sched:sched_switch", 1}},
		},
		"both kinds of core": {feed: []*perfdata.Event{atom, core, atom}, event: atom, used: 3},
		"by name":            {want: "instructions", feed: []*perfdata.Event{core, instr}, event: instr, used: 1, unused: []Unused{{"cpu_core/cycles/u", 1}}},
		"by bare name":       {want: "cycles", feed: []*perfdata.Event{instr, core}, event: core, used: 1, unused: []Unused{{"instructions", 1}}},
		"tracepoint if there is no other": {
			feed: []*perfdata.Event{dummy, switchE}, event: switchE, used: 1, unused: []Unused{{"dummy:u", 1}},
		},
		"nothing": {feed: []*perfdata.Event{dummy, nil}, unused: []Unused{{"dummy:u", 1}, {"unknown event", 1}}},
	} {
		r := feed(newNone(Options{Event: c.want}), c.feed...).Result()
		if r.Event != c.event || r.Used != c.used || !reflect.DeepEqual(r.Unused, c.unused) {
			t.Errorf("%s: event %v used %d unused %v, want %v %d %v", name, eventName(r.Event), r.Used, r.Unused, eventName(c.event), c.used, c.unused)
		}
		if v := r.Stacks.Total(); v != (graph.Values{Samples: c.used, Event: 10 * float64(c.used), Calls: float64(c.used)}) {
			t.Errorf("%s: stacks hold %v for %d samples", name, v, c.used)
		}
	}
}

// A call counter that samples too, in the same group, is not what the profile
// is of, even if it is the first event.
func TestSelectionPutsTheCallCounterSecond(t *testing.T) {
	r := newRig()
	r.calls.Index, r.cycles.Index = 0, 1
	own := r.sample(1, 5)
	own.Event = r.calls
	res := run(t, Options{Meta: r.meta}, own, r.sample(2, 3))
	if res.Event != r.cycles || res.Used != 1 {
		t.Errorf("profile of %s with %d samples, want cycles with 1", eventName(res.Event), res.Used)
	}
	want(t, res, map[image.Loc]float64{2: 3})
}

func TestSelectionMerge(t *testing.T) {
	mk := func(events ...*perfdata.Event) Estimator { return feed(newNone(Options{}), events...) }
	for name, c := range map[string]struct {
		a, b Estimator
		want *perfdata.Event
		used int64
	}{
		"same event":   {mk(core, core), mk(atom), core, 3},
		"better event": {mk(instr, instr), mk(core), core, 1},
		"worse event":  {mk(core), mk(instr, instr), core, 1},
		"into nothing": {mk(), mk(instr), instr, 1},
		"nothing":      {mk(instr), mk(dummy), instr, 1},
	} {
		before := c.a.Result().Used + c.b.Result().Used
		for _, r := range [][]Unused{c.a.Result().Unused, c.b.Result().Unused} {
			for _, u := range r {
				before += u.Samples
			}
		}
		if err := c.a.Merge(c.b); err != nil {
			t.Fatal(err)
		}
		r := c.a.Result()
		if r.Event != c.want || r.Used != c.used || r.Stacks.Total().Samples != c.used {
			t.Errorf("%s: %s, %d used, %v in stacks; want %s, %d", name, eventName(r.Event), r.Used, r.Stacks.Total(), eventName(c.want), c.used)
		}
		all := r.Used
		for _, u := range r.Unused {
			all += u.Samples
		}
		if all != before {
			t.Errorf("%s: %d samples accounted for, want %d", name, all, before)
		}
	}
}

func TestLabels(t *testing.T) {
	for _, c := range []struct {
		opt  Options
		want graph.Label
	}{
		{Options{}, graph.Label{Comm: "c"}},
		{Options{LabelPID: true}, graph.Label{Comm: "c", PID: 7}},
		{Options{LabelPID: true, LabelTID: true}, graph.Label{Comm: "c", PID: 7, TID: 8}},
	} {
		st, _ := feed(newNone(c.opt), core).Result().Stacks.At(0)
		if st.Label != c.want {
			t.Errorf("label %v, want %v", st.Label, c.want)
		}
	}
}
