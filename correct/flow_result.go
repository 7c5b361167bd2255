package correct

import (
	"math"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
)

// flowResult is the outcome of the method flow.
type flowResult struct {
	edges  []flowCall
	dcg    *graph.DCG
	stacks []float64 // calls by stack

	overlap, effective   float64
	functions, untrusted int
	sigma                float64
	noCode               float64 // share of samples
	lag                  int     // of samples, instructions
}

// flowCall is an estimate of one edge.
type flowCall struct {
	edge          int32 // of flowEvidence.edges
	calls, stderr float64
	tail          bool // entries by tail calls: no call
}

// newResult fills in what does not depend on estimates.
func (m *flowModel) newResult() *flowResult {
	r := &flowResult{sigma: m.s.sigma, lag: m.e.skid.lag}
	for _, f := range m.c.list {
		switch {
		case f.g == nil:
		case !f.trusted:
			r.untrusted++
			fallthrough
		default:
			r.functions++
		}
	}
	if m.e.total > 0 {
		for _, n := range m.e.noCode {
			r.noCode += n / m.e.total
		}
	}
	return r
}

// result reads the edges off the solved system.
func (m *flowModel) result() *flowResult {
	r := m.newResult()
	draws := m.s.draw(m.opt.draws)
	for i := range m.e.edges {
		e := &m.e.edges[i]
		switch {
		case e.v >= 0:
			r.edges = append(r.edges, flowCall{edge: int32(i), calls: math.Exp(m.s.x[e.v])})
		case e.tail && e.leaf > 0:
			r.edges = append(r.edges, flowCall{edge: int32(i), calls: m.entered(e), tail: true})
		}
	}
	r.errors(m, draws)
	return r
}

// entered is how often e's callee was entered by the tail calls behind e.
func (m *flowModel) entered(e *flowEdge) float64 {
	f := e.callee
	if f.sampled <= 0 {
		return 0
	}
	return math.Exp(m.s.x[f.entry]) * min(1, e.leaf/f.sampled)
}

// errors fills in standard errors, expected overlap and effective samples from
// draws of the posterior distribution.
func (r *flowResult) errors(m *flowModel, draws [][]float32) {
	if len(draws) == 0 {
		return
	}
	total := r.sum()
	var overlap, spread, vari float64
	drawn := make([]float64, len(draws))
	for i := range r.edges {
		c := &r.edges[i]
		v := m.e.edges[c.edge].v
		if v < 0 {
			c.stderr = math.NaN()
			continue
		}
		ss := 0.0
		for k, d := range draws {
			ss += float64(d[v]) * float64(d[v])
			drawn[k] += c.calls * math.Exp(bounded(float64(d[v])))
		}
		c.stderr = c.calls * math.Sqrt(math.Expm1(min(ss/float64(len(draws)), 4)))
	}
	for k, d := range draws {
		common := 0.0
		for i := range r.edges {
			c := &r.edges[i]
			if v := m.e.edges[c.edge].v; v >= 0 {
				p := c.calls / total
				q := c.calls * math.Exp(bounded(float64(d[v]))) / drawn[k]
				common += min(p, q)
				spread += p * (1 - p)
				vari += (p - q) * (p - q)
			}
		}
		overlap += common
	}
	r.overlap = 100 * overlap / float64(len(draws))
	if vari > 0 {
		r.effective = spread / vari
	}
}

func bounded(d float64) float64 { return max(min(d, 3), -3) }

// sum is that of all calls.
func (r *flowResult) sum() float64 {
	sum := 0.0
	for i := range r.edges {
		if c := &r.edges[i]; !c.tail {
			sum += c.calls
		}
	}
	return sum
}

// scale makes the calls sum up to total.
func (r *flowResult) scale(total float64) {
	sum := r.sum()
	if !(sum > 0) || !(total > 0) {
		return
	}
	for i := range r.edges {
		r.edges[i].calls *= total / sum
		r.edges[i].stderr *= total / sum
	}
}

// share makes the call graph and divides each edge among the stacks that have
// it as their leaf edge. Edges that are estimated at less than a millionth of
// all are left out: what is not executed gets such estimates.
func (r *flowResult) share(e *flow, m *flowModel) {
	r.dcg = graph.NewDCG()
	r.dcg.Dropped = m.e.drops
	r.stacks = make([]float64, e.stacks.Len())
	least := 1e-6 * r.sum()
	calls := make([]float64, len(m.e.edges))
	for _, c := range r.edges {
		k := &m.e.edges[c.edge]
		calls[c.edge] = c.calls
		if c.tail || c.calls < least && k.raw == 0 {
			continue
		}
		to := image.Addr{Image: k.callee.fn.Image, Offset: k.callee.fn.Entry}
		r.dcg.Add(graph.Edge{Site: m.c.sites[k.site].addr, Callee: to}, graph.EdgeValues{Samples: k.raw, Calls: c.calls, Stderr: c.stderr})
	}
	for i, k := range m.e.leafs {
		if k < 0 {
			continue
		}
		if to := m.e.edges[k].movedTo; to > 0 {
			k = to - 1
		}
		if _, v := e.stacks.At(i); m.e.edges[k].raw > 0 {
			r.stacks[i] = calls[k] * float64(v.Samples) / float64(m.e.edges[k].raw)
		}
	}
}
