package correct

import (
	"math"
	"testing"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/image/x86"
	"github.com/perfcorrect/perfcorrect/perfdata"
)

// A made-up program, one instruction a byte:
//
//	100 call 200; 101 next; 102 next
//	200 next; 201 call 300; 202 next; 203 ret
//	300 next; 301 jcc 303; 302 next; 303 ret
//	400 jump out of a stub
func tinyCode() (*codeReader, func(uint64) image.Addr) {
	im := new(image.Image)
	at := func(o uint64) image.Addr { return image.Addr{Image: im, Offset: o} }
	c := newCodeReader(nil)
	put := func(o uint64, k x86.Control, target uint64) {
		c.insts[at(o)] = x86.Inst{PC: o, Len: 1, Control: k, Target: target}
	}
	put(100, x86.Call, 200)
	for _, o := range []uint64{101, 102, 200, 202, 300, 302} {
		put(o, x86.Next, 0)
	}
	put(201, x86.Call, 300)
	put(203, x86.Return, 0)
	put(301, x86.CondJump, 303)
	put(303, x86.Return, 0)
	put(400, x86.IndirectJump, 0)
	return c, at
}

func TestReach(t *testing.T) {
	c, at := tinyCode()
	stub := func(a image.Addr) (image.Addr, bool) { return at(300), a == at(400) }
	for _, k := range []struct {
		name        string
		entry       uint64
		n           int
		goal, depth int
		want        bool
	}{
		{"at the entry", 200, 0, 200, 1, true},
		{"one instruction in", 200, 1, 201, 1, true},
		{"not so far", 200, 1, 202, 1, false},
		{"it has called on", 200, 3, 301, 2, true},
		{"which is not its own frame", 200, 3, 301, 1, false},
		{"fell through", 300, 2, 302, 1, true},
		{"jumped", 300, 2, 303, 1, true},
		{"returned", 300, 3, 101, 0, true},
		{"returned later", 300, 4, 101, 0, true},
		{"called, which returned", 200, 5, 202, 1, true},
		{"through a stub", 400, 2, 301, 1, true},
	} {
		if got := c.reach(at(k.entry), at(101), k.n, at(uint64(k.goal)), k.depth, stub); got != k.want {
			t.Errorf("%s: %v", k.name, got)
		}
	}
}

func TestCallSampler(t *testing.T) {
	r := newRig()
	if _, err := New("calls", Options{Meta: r.meta}); err == nil {
		t.Error("a counter that does not sample, and no error")
	}
	r.calls.SamplePeriod, r.calls.Leader = 1000, nil
	e, err := New("calls", Options{Meta: r.meta})
	if err != nil {
		t.Fatal(err)
	}
	// Samples of other events are none of calls.
	e.Add(r.sample(1, 10))
	s := r.sample(2, 10)
	s.Event, s.Period = r.calls, 1000
	e.Add(s)
	want(t, e.Result(), map[image.Loc]float64{2: 1000})
	if u := e.Result().Unused; len(u) != 1 || u[0].Samples != 1 {
		t.Errorf("unused %v", u)
	}
	// With branch stacks every record shares the period.
	r.calls.SampleType |= perfdata.FieldBranchStack
	r.calls.BranchSampleType = perfdata.BranchAnyCall
	b := r.stacked(10, callTo(1, 5), callTo(2, 50), callTo(1, 500), callTo(3, 5))
	b.Event, b.Period = r.calls, 1000
	wantCalls(t, estimates(t, "calls", Options{Meta: r.meta}, b).byCallee(), map[image.Loc]float64{1: 500, 2: 250, 3: 250})
}

// What is expected of independent observations is what they have on average.
func TestObserved(t *testing.T) {
	g := graph.NewDCG()
	im := new(image.Image)
	for i := range uint64(100) {
		g.Add(graph.Edge{Site: image.Addr{Image: im, Offset: i}}, graph.EdgeValues{Samples: 100, Calls: 100})
	}
	var r Result
	observed(&r, g)
	// 10,000 observations of 100 equal edges: each is off by 0.1/sqrt(pi/2) of
	// its share, and half of that is lost.
	if want := 100 * (1 - 0.5*math.Sqrt(2/math.Pi)*math.Sqrt(0.99)/10); math.Abs(r.Overlap-want) > 0.01 {
		t.Errorf("expected overlap %.3f, want %.3f", r.Overlap, want)
	}
	if r.EffectiveSamples != 10_000 {
		t.Errorf("%v effective samples", r.EffectiveSamples)
	}
}

func TestCombine(t *testing.T) {
	im := new(image.Image)
	edge := func(i uint64) graph.Edge {
		return graph.Edge{Site: image.Addr{Image: im, Offset: i}, Callee: image.Addr{Image: im}}
	}
	a, b := graph.NewDCG(), graph.NewDCG()
	a.Add(edge(1), graph.EdgeValues{Samples: 5, Calls: 100, Stderr: 10})
	a.Add(edge(2), graph.EdgeValues{Samples: 5, Calls: 100, Stderr: 20})
	// b has the same total in another unit.
	b.Add(edge(1), graph.EdgeValues{Samples: 9, Calls: 6, Stderr: 1})
	b.Add(edge(2), graph.EdgeValues{Samples: 9, Calls: 4, Stderr: 1})
	g := combine(a, b)
	// Scaled by 20: 120 +- 20 and 80 +- 20.
	for i, want := range map[uint64]float64{1: 0.8*100 + 0.2*120, 2: 0.5*100 + 0.5*80} {
		if v := g.Get(edge(i)); math.Abs(v.Calls-want) > 1e-9 {
			t.Errorf("edge %d: %v, want %v", i, v.Calls, want)
		}
	}
	if s := g.Get(edge(1)).Stderr; math.Abs(s-math.Hypot(0.8*10, 0.2*20)) > 1e-9 {
		t.Errorf("error %v", s)
	}
	b.Add(edge(3), graph.EdgeValues{Samples: 1, Calls: 1, Stderr: 1})
	if v := combine(a, b).Get(edge(3)); !(v.Calls > 0 && v.Calls < 20) {
		t.Errorf("an edge only one has seen: %v", v)
	}
}

func TestAuto(t *testing.T) {
	for _, c := range []struct {
		rig  func() *rig
		want string
	}{
		{func() *rig { return branchRig(perfdata.BranchAnyCall) }, "lbr"},
		{func() *rig { return branchRig(perfdata.BranchCallStack) }, "density"},
		{newRig, "density"},
		{func() *rig {
			r := newRig()
			r.calls.SamplePeriod, r.calls.SampleType, r.calls.Leader = 1000, perfdata.FieldCallchain, nil
			return r
		}, "calls"},
		{func() *rig {
			r := newRig()
			r.meta.Events = r.meta.Events[:1]
			return r
		}, "none"},
	} {
		e, err := New("auto", Options{Meta: c.rig().meta})
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Result().Method; got != c.want {
			t.Errorf("auto chose %s, want %s", got, c.want)
		}
	}
}
