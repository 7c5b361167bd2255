package correct

import (
	"fmt"
	"strings"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/session"
)

// Result computes what the open block adds without closing it.
func (e *lbr) Result() *Result {
	x := e.finished()
	r := x.result(e.name)
	var made *graph.DCG
	r.DCG = func(res graph.Resolver) *graph.DCG {
		if made == nil {
			made = x.dcg(res)
		}
		return made
	}
	if e.opt.Store != nil {
		var lost float64
		r.Stacks, lost = spread(x.stacks, r.DCG(e.opt.Store), e.opt.Store)
		if x.sums.calls > 0 && lost > 0.001*x.sums.calls {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%.1f %% of calls are of edges no sample was taken in: they are in the call graph, not in the stacks", 100*lost/x.sums.calls))
		}
	}
	x.sums.uncertainty(r)
	r.Warnings = append(r.Warnings, x.warnings()...)
	r.Summary = x.summary()
	return r
}

func (e *lbr) dcg(res graph.Resolver) *graph.DCG {
	return e.sums.dcg(&e.rec, leafTargets(e, res), res)
}

// dcg turns record types into call edges. Types with the same edge (through a
// stub and directly) are taken for independent.
func (t *edgeSums) dcg(r *recordReader, to *targets, res graph.Resolver) *graph.DCG {
	g := graph.NewDCG()
	newest := t.newestShare()
	for i := range t.edges {
		e := &t.edges[i]
		if e.records == 0 || e.calls == 0 {
			continue
		}
		v := graph.EdgeValues{Samples: e.records, Calls: e.calls, Stderr: e.stderr(newest)}
		edge, why, ok := to.edge(r, uint32(i), res)
		if !ok {
			g.Dropped[why].Samples += v.Samples
			g.Dropped[why].Calls += v.Calls
			continue
		}
		g.Add(edge, v)
	}
	return g
}

// spread gives each stack its share of the calls of its leaf edge: in the
// proportion of its samples among those with the same leaf edge, for time in
// one callee from one call site is alike in all contexts. lost are the calls of
// edges that are no stack's leaf edge.
func spread(s *graph.Stacks, g *graph.DCG, res graph.Resolver) (out *graph.Stacks, lost float64) {
	edges := make([]graph.Edge, s.Len())
	has := make([]bool, s.Len())
	samples := map[graph.Edge]float64{}
	leaf := graph.NewLeafEdge(res)
	for i := range s.Len() {
		st, v := s.At(i)
		if edges[i], _, has[i] = leaf.Of(st.Frames); has[i] {
			samples[edges[i]] += float64(v.Samples)
		}
	}
	for e, v := range g.All() {
		if samples[e] == 0 {
			lost += v.Calls
		}
	}
	return s.Map(func(i int, v graph.Values) graph.Values {
		v.Calls = 0
		if has[i] {
			v.Calls = g.Get(edges[i]).Calls * float64(v.Samples) / samples[edges[i]]
		}
		return v
	}), lost
}

func (e *lbr) summary() string {
	t := &e.t
	parts := []string{fmt.Sprintf("%s: %d samples of %s, %d branch records (%s)", e.name, t.samples, eventName(e.event), e.rec.records, branchModes[e.mode])}
	switch {
	case t.ofCalls > 0:
		parts = append(parts, "each tick a call")
	case e.weighing != weighGaps || !e.rec.cycles:
		parts = append(parts, "each stack one weight")
		if e.weighing == weighGaps {
			parts = append(parts, "for there are no cycle counts")
		}
	default:
		parts = append(parts, "weighed by the time until the next calls")
	}
	switch {
	case t.ofCalls > 0:
	case t.counted > 0:
		parts = append(parts, fmt.Sprintf("%.0f calls counted by %s", t.calls, e.how))
		if t.exact > 0 {
			parts = append(parts, fmt.Sprintf("%d intervals seen whole", t.exact))
		}
	default:
		parts = append(parts, "no call counter, so not calibrated")
	}
	return strings.Join(parts, ", ")
}

func (e *lbr) warnings() []string {
	var out []string
	say := func(n, of int64, format string, args ...any) {
		if n > 0 && float64(n) > 0.001*float64(of) {
			out = append(out, fmt.Sprintf("%d of %d ", n, of)+fmt.Sprintf(format, args...))
		}
	}
	r, t := &e.rec, &e.t
	all := r.records + r.rejects.empty + r.rejects.repeated
	for _, n := range r.rejects.kinds {
		all += n
	}
	samples := t.samples + t.empty
	say(t.empty, samples, "samples have no branch records that could be used")
	say(t.uncounted, samples, "samples have no count of calls in their interval and get the mean density")
	say(r.rejects.empty, all, "branch records are empty, left out")
	say(r.rejects.repeated, all, "branch records repeat the newest, left out")
	say(r.rejects.kinds[unknownKind], all, "branch records have no type, and no code to tell it from, left out")
	say(r.rejects.kinds[kernelEntry], all, "branch records are system calls or interrupts, left out")
	say(r.rejects.kinds[outsideMode], all, "branch records are of a mode the event does not count, left out")
	say(r.saturated, all, "cycle counts are at their maximum: the calls before are weighed too much")
	if e.mode == someCalls {
		out = append(out, "the branch stacks show some kinds of calls only: the others are missing")
	}
	if t.uncounted == samples && t.ofCalls == 0 && samples > 0 && !countsCycles(e) {
		out = append(out, fmt.Sprintf("%s does not count cycles and there is no call counter: estimates have meaning against each other only", eventName(e.event)))
	}
	return out
}

func countsCycles(e *lbr) bool { return e.event != nil && strings.Contains(e.event.Name, "cycles") }

// leafRecord is a newest call and the ip of its sample.
type leafRecord struct{ id, leaf uint32 }

const maxLeafs = 1 << 16

// noteLeaf remembers where samples were taken right after a call, as far as
// stacks do not say it: see targets.
func (e *lbr) noteLeaf(s *session.Sample) {
	if len(s.Stack) != 1 || !e.rec.isEdge(e.rec.ids[0]) {
		return
	}
	k := leafRecord{e.rec.ids[0], uint32(s.Stack[0])}
	if _, ok := e.leafs[k]; ok || len(e.leafs) < maxLeafs {
		e.leafs[k]++
	}
}
