package correct

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/session"
)

// callSamples takes each sample of an event that counts calls for an observation of
// a call.
//
// Assumes: every call is as likely as any other to be the one the counter
// overflows at.
// Formula: calls(e) = sum of the periods of the samples whose call is e. Which
// call that is, is found in this order:
//
//   - with branch stacks of calls, all records of the stack share the period:
//     they are as good a sample, and the newest need not be the call of the
//     tick. That is method lbr with equal weights;
//   - the instruction at the ip is a call (precise_ip), of a target the code
//     tells;
//   - for an event that counts returns, the call before the ip, or the leaf
//     edge if the ip is at a return;
//   - else the leaf edge of the stack, the call of the function the ip is at
//     the beginning of. If most samples are the same few instructions after
//     the call (see skid), the path from the call to the ip is followed, for
//     the thread may have made another call on it, or have returned.
//
// Source: Arnold and Grove 2005, section 3.2 (counter-based sampling), with
// the processor's counter as counter.
// Unit: calls.
// Wrong: where the period is in step with a loop (choose a prime one); without
// branch stacks, where the sample is taken long after the call, and at the
// first instruction of a function whose caller the unwinder cannot see yet.
// Near returns stand in for calls, one each but for longjmp and stack switches.
type callSamples struct {
	selection
	opt  Options
	how  string
	prec bool // the ip is that of the call
	ret  bool // the event counts returns
	made *graph.DCG
}

var errNoCallSamples = errors.New("no event that counts calls is sampled; perf record -e br_inst_retired.near_call:u -c 10007 -g samples one")

// callSampler returns the event that counts calls and has a period.
func callSampler(opt Options) (*perfdata.Event, string, error) {
	if opt.Meta == nil {
		return nil, "", errNoCallSamples
	}
	events, how, err := callEvents(opt.Meta.Events, opt.Meta, opt.CallEvent)
	if errors.Is(err, ErrNoCallEvent) {
		return nil, "", errNoCallSamples
	}
	if err != nil {
		return nil, "", err
	}
	for _, e := range events {
		member := e.Leader != nil && e.Leader != e && e.SampleType&perfdata.FieldRead != 0
		if e.SamplePeriod > 0 && !member && (opt.Event == "" || sameName(e, opt.Event)) {
			return e, how, nil
		}
	}
	return nil, "", errNoCallSamples
}

func sameName(e *perfdata.Event, name string) bool { return e.Name == name || bareName(e.Name) == name }

func newCalls(opt Options) (Estimator, error) {
	ev, how, err := callSampler(opt)
	if err != nil {
		return nil, fmt.Errorf("method calls: %w", err)
	}
	opt.Event = ev.Name
	switch modeOf(ev) {
	case onlyCalls, allBranches, onlyReturns:
		return newBranches(opt, "calls", weighCalls)
	}
	return &callSamples{
		selection: newSelection(opt, nil), opt: opt, how: how,
		prec: ev.PreciseIP() > 0,
		ret:  strings.Contains(how, "standing in for calls"),
	}, nil
}

func (e *callSamples) Add(s *session.Sample) {
	if e.take(s) != leave {
		e.add(s, float64(s.Period))
		e.made = nil
	}
}

func (e *callSamples) Merge(o Estimator) error {
	x, ok := o.(*callSamples)
	if !ok {
		return fmt.Errorf("cannot merge method %T into calls", o)
	}
	e.made = nil
	if e.merge(&x.selection) != leave {
		e.stacks.Merge(x.stacks)
	}
	return nil
}

func (e *callSamples) Result() *Result {
	r := e.result("calls")
	r.DCG = func(res graph.Resolver) *graph.DCG {
		if e.made == nil {
			e.made = newCallFinder(e, res).dcg()
		}
		return e.made
	}
	if e.opt.Store != nil {
		observed(r, r.DCG(e.opt.Store))
	}
	r.Summary = fmt.Sprintf("calls: %d samples of %s, each a call", r.Used, e.how)
	return r
}

// observed fills in the expected overlap of a graph of independent
// observations of calls.
//
// An edge's share is binomial with the standard error s, so it is off by
// s*sqrt(2/pi) on average, half of which is lost from the overlap; the edges
// not seen have the share that edges seen once have (Good, Biometrika 40,
// 1953), and what they lack the others have too much.
func observed(r *Result, g *graph.DCG) {
	var n, once, root float64
	for _, v := range g.All() {
		n += float64(v.Samples)
		if v.Samples == 1 {
			once++
		}
	}
	if n == 0 {
		return
	}
	for _, v := range g.All() {
		p := float64(v.Samples) / n
		root += math.Sqrt(p * (1 - p) / n)
	}
	r.Overlap = max(0, 100*(1-root*math.Sqrt(2/math.Pi)/2-once/n/2))
	r.EffectiveSamples = n
}

// callFinder finds the call of a sample.
type callFinder struct {
	e       *callSamples
	res     graph.Resolver
	code    *codeReader
	targets *targets
	leaf    *graph.LeafEdge
	skid    int // instructions from the call to the ip, the call included; 0: not known
}

func newCallFinder(e *callSamples, res graph.Resolver) *callFinder {
	f := &callFinder{e: e, res: res, code: newCodeReader(e.opt.Store), targets: newTargets(res), leaf: graph.NewLeafEdge(res)}
	f.vote()
	if !e.ret {
		f.skid = f.usualSkid()
	}
	return f
}

// vote learns what calls to stubs reach from the stacks.
func (f *callFinder) vote() {
	sites := map[image.Addr]*image.Function{}
	for st := range f.e.stacks.All() {
		if len(st.Frames) < 2 {
			continue
		}
		if site, ok := f.site(st.Frames[1]); ok {
			if to, ok := f.code.target(site); ok {
				if key := f.targets.key(to.Image.FunctionAt(to.Offset)); key != nil {
					sites[site] = key
				}
			}
		}
	}
	f.targets.stacks(f.e.stacks, sites)
	f.targets.decide()
}

// site is the call that returns to l.
func (f *callFinder) site(l image.Loc) (image.Addr, bool) {
	if !f.res.Addr(l).Return {
		return image.Addr{}, false
	}
	a := f.res.CallSite(l)
	a.Return = false
	return a, known(a.Image)
}

func (f *callFinder) dcg() *graph.DCG {
	g := graph.NewDCG()
	for st, v := range f.e.stacks.All() {
		edge, why, ok := f.find(st.Frames)
		if !ok {
			g.Dropped[why].Samples += v.Samples
			g.Dropped[why].Event += v.Event
			g.Dropped[why].Calls += v.Calls
			continue
		}
		// Independent samples of about the same period.
		g.Add(edge, graph.EdgeValues{Samples: v.Samples, Calls: v.Calls, Stderr: v.Calls / math.Sqrt(float64(v.Samples))})
	}
	return g
}

func (f *callFinder) find(frames []image.Loc) (graph.Edge, graph.Reason, bool) {
	if len(frames) == 0 {
		return graph.Edge{}, graph.NoFrames, false
	}
	ip := f.res.Addr(frames[0])
	if e, ok := f.direct(ip); ok && (f.e.prec || f.skid == 1) {
		return e, 0, true
	}
	if f.e.ret && known(ip.Image) {
		for _, c := range f.code.before(ip) {
			if e, ok := f.direct(c); ok && f.near(c, ip, 6) {
				return e, 0, true
			}
		}
	}
	if e, ok := f.followed(frames, ip); ok {
		return e, 0, true
	}
	if f.returned(ip) {
		return graph.Edge{}, graph.UnknownTarget, false
	}
	e, why, ok := f.leaf.Of(frames)
	if len(frames) > 1 {
		if site, is := f.site(frames[1]); is {
			if d, is := f.direct(site); is && d.Callee.Image == ip.Image {
				return d, 0, true
			}
		}
	}
	return e, why, ok
}

// near reports whether c is among the last n instructions before ip.
func (f *callFinder) near(c, ip image.Addr, n int) bool {
	at := c
	for range n {
		in := f.code.at(at)
		if in.Len == 0 {
			return false
		}
		if at.Offset = in.End(); at.Offset == ip.Offset {
			return true
		}
	}
	return false
}

// direct returns the edge of the direct call at a.
func (f *callFinder) direct(a image.Addr) (graph.Edge, bool) {
	to, ok := f.code.target(a)
	if !ok {
		return graph.Edge{}, false
	}
	if fn := to.Image.FunctionAt(to.Offset); fn != nil && fn.Stub {
		if fn = f.targets.behind(fn); fn == nil {
			return graph.Edge{}, false
		}
		to = image.Addr{Image: fn.Image, Offset: fn.Entry}
	}
	return graph.Edge{Site: a, Callee: to}, true
}
