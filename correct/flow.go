package correct

import (
	"errors"
	"fmt"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/session"
)

// flow estimates calls from callchains and the code: how often code ran shows
// in its samples, and the code tells what must have run equally often.
//
// Assumes: callchains have the caller of the leaf; a block of code gets
// samples in proportion to how often it ran, to its instructions, and to a
// cost of its own, lognormal with a spread that is learnt (flowModel.learn).
//
// Formula: unknown are how often every function was entered, every class of
// control-equivalent blocks and edges ran, and every call was made. They are
// tied by what holds in any program:
//
//	a block ran as often as its in-edges together, and as its out-edges;
//	a function was entered as often as its call sites and tail calls together led there;
//	a direct call was made as often as its block ran, an indirect one shares that among its callees.
//
// The estimate is what is most likely given the samples: n samples on a run of
// s instructions that was executed x times are Poisson with mean x s k, and
// log k is normal; and the shares that the ways into a function have of the
// samples in code that each call runs exactly once (in the function or certainly
// called below it) are their shares of the calls, whatever that code costs.
// Other samples below a way count too, with a wide spread of their own.
// Gauss-Newton steps in logarithms, each solved by conjugate gradients
// (flow_solve.go).
//
// Standard errors come from draws of the posterior distribution in its normal
// approximation (Papandreou and Yuille, "Gaussian Sampling by Local
// Perturbations", NIPS 2010), as does the expected overlap.
//
// Source: flow constraints as in Lee et al., "Correcting the Dynamic Call Graph
// Using Control-Flow Constraints", CC 2007, and Levin, Newman and Haber,
// "Complementing Missing and Inaccurate Profiling Using a Minimum Cost
// Circulation Algorithm", HiPEAC 2008; control equivalence as in Johnson,
// Pearson and Pingali, "The Program Structure Tree", PLDI 1994. The likelihood is
// this package's.
//
// Unit: calls, if the recording has a call counter, to which the total is
// scaled, or the sampled event counts instructions. Otherwise calls if an
// instruction took one unit of the event on average: the proportions are right.
//
// A stack's calls are those of its leaf edge, divided among the stacks with
// that edge in proportion to their samples; what the leaf was entered by tail
// calls is included, which the call graph leaves out. Edges that no sample
// shows, which the code and the samples around it imply, are in the call graph
// only.
//
// Wrong: for code that is not to be had (JIT compilers) and machines other than
// x86-64, where a call is taken to cost the same everywhere; where the cost of
// a block is far from others' and nothing else tells how often it ran, above all
// for tiny functions called indirectly; and where callchains lack the callers
// of leaves.
type flow struct {
	selection
	opt      Options
	counters []*perfdata.Event
	how      string // the call counter was recognised
	calls    float64
	counted  int64 // samples whose interval calls were counted in
}

// FlowModel says how much of the method flow is used; less than all serves to
// show what each part is worth.
type FlowModel uint8

const (
	FlowAll   FlowModel = iota
	FlowEntry           // samples in the entry block, over its instructions
	FlowTree            // class of the call site, and code certainly run once per call
)

func newFlow(opt Options) (*flow, error) {
	if opt.Store == nil {
		return nil, errors.New("method flow needs the code of the program: no image store")
	}
	var events []*perfdata.Event
	if opt.Meta != nil {
		events = opt.Meta.Events
	}
	counters, how, err := callEvents(events, opt.Meta, opt.CallEvent)
	if err != nil && (opt.CallEvent != "" || !errors.Is(err, ErrNoCallEvent)) {
		return nil, fmt.Errorf("method flow: %w", err)
	}
	return &flow{selection: newSelection(opt, counters), opt: opt, counters: counters, how: how}, nil
}

func (e *flow) Add(s *session.Sample) {
	switch e.take(s) {
	case leave:
		return
	case restart:
		e.calls, e.counted = 0, 0
	}
	if n, ok := countedCalls(s.Interval, e.counters); ok {
		e.calls += n
		e.counted++
	}
	e.add(s, 0)
}

func (e *flow) Merge(o Estimator) error {
	x, ok := o.(*flow)
	if !ok {
		return fmt.Errorf("cannot merge method %T into flow", o)
	}
	switch e.merge(&x.selection) {
	case leave:
		return nil
	case restart:
		e.calls, e.counted = 0, 0
	}
	e.stacks.Merge(x.stacks)
	e.calls += x.calls
	e.counted += x.counted
	return nil
}

func (e *flow) Result() *Result {
	r := e.result("flow")
	f := e.estimate(defaultFlowTuning)
	r.Stacks = e.stacks.Map(func(i int, v graph.Values) graph.Values {
		v.Calls = f.stacks[i]
		return v
	})
	r.DCG = func(graph.Resolver) *graph.DCG { return f.dcg }
	r.Overlap, r.EffectiveSamples = f.overlap, f.effective
	r.Summary = fmt.Sprintf("flow: %d samples of %s, control flow of %d functions (%d not trusted), spread of costs %.2f",
		r.Used, eventName(r.Event), f.functions, f.untrusted, f.sigma)
	if f.lag > 0 {
		r.Summary += fmt.Sprintf(", samples lag by %d instructions", f.lag)
	}
	if e.counted > 0 {
		r.Summary += fmt.Sprintf(", total of %s", e.how)
	}
	if f.noCode > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%.1f %% of samples are in code that could not be read: calls there are guessed from time", 100*f.noCode))
	}
	return r
}

// estimate runs the whole method.
func (e *flow) estimate(t flowTuning) *flowResult {
	c := newFlowCode(e.opt.Store, e.opt.Meta == nil || isX86(e.opt.Meta.Arch))
	c.prepare(e.locations())
	ev := newFlowEvidence(c)
	mean := e.period / float64(max(1, e.used))
	weight := func(v graph.Values) float64 {
		if mean > 0 {
			return v.Event / mean
		}
		return float64(v.Samples)
	}
	for st, v := range e.stacks.All() {
		if len(st.Frames) > 0 {
			ev.skid.leafs[st.Frames[0]] += weight(v)
		}
	}
	ev.skid.learn()
	for i := range e.stacks.Len() {
		st, v := e.stacks.At(i)
		w := weight(v)
		ev.add(int32(i), st.Frames, v, w)
	}
	m := newFlowModel(c, ev, t)
	var r *flowResult
	switch e.opt.Flow {
	case FlowEntry, FlowTree:
		r = m.simple(e.opt.Flow)
	default:
		m.s.solve(t.rounds, t.steps)
		r = m.result()
	}
	r.scale(e.total(r, mean))
	r.share(e, m)
	return r
}

// total returns the number of calls all edges together are to have.
func (e *flow) total(r *flowResult, period float64) float64 {
	if e.counted > 0 && e.calls > 0 {
		return e.calls * float64(e.used) / float64(e.counted)
	}
	return r.sum() * max(period, 1)
}

// locations lists all that is on the stacks.
func (e *flow) locations() (list []image.Loc) {
	seen := map[image.Loc]bool{}
	for i := range e.stacks.Len() {
		st, _ := e.stacks.At(i)
		for _, l := range st.Frames {
			if !seen[l] {
				seen[l] = true
				list = append(list, l)
			}
		}
	}
	return list
}
