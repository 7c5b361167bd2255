package correct

import (
	"fmt"
	"math"

	"github.com/perfcorrect/perfcorrect/cfg"
	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/session"
)

type flow struct {
	selection
	opt Options
}

func newFlow(opt Options) (*flow, error) {
	if opt.Store == nil {
		return nil, fmt.Errorf("method flow needs the code of the program")
	}
	return &flow{selection: newSelection(opt, nil), opt: opt}, nil
}

func (e *flow) Add(s *session.Sample) {
	if e.take(s) != leave {
		e.add(s, 0)
	}
}

func (e *flow) Merge(o Estimator) error {
	x, ok := o.(*flow)
	if !ok {
		return fmt.Errorf("cannot merge method %T into flow", o)
	}
	if e.merge(&x.selection) != leave {
		e.stacks.Merge(x.stacks)
	}
	return nil
}

func (e *flow) Result() *Result {
	r := e.result("flow")
	f := e.estimate()
	r.Stacks = e.stacks.Map(func(i int, v graph.Values) graph.Values {
		v.Calls = f.calls[i]
		return v
	})
	r.DCG = func(graph.Resolver) *graph.DCG { return f.dcg }
	r.Summary = fmt.Sprintf("flow: %d samples of %s", r.Used, eventName(r.Event))
	return r
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

type flowResult struct {
	calls []float64
	dcg   *graph.DCG
}

func (e *flow) estimate() *flowResult {
	decode := e.opt.Meta == nil || isX86(e.opt.Meta.Arch)
	c := newFlowCode(e.opt.Store, decode)
	ev := newFlowEvidence(c)
	c.prepare(e.locations())
	for i := range e.stacks.Len() {
		st, v := e.stacks.At(i)
		ev.add(int32(i), st.Frames, v, float64(v.Samples))
	}
	t := defaultFlowTuning
	if FlowTune != nil {
		FlowTune(&t.sigma, &t.omega, &t.omegaPool, &t.prior, &t.rounds, &t.steps)
	}
	m := newFlowModel(c, ev, t)
	m.s.solve(t.rounds, t.steps)
	if FlowDebug == 1 {
		fmt.Printf("sigma %.3f ", m.s.sigma)
	}
	if FlowDebug != 0 {
		m.debug()
	}
	return m.result(e)
}

// FlowTune is for experiments.
var FlowTune func(sigma, omega, omegaPool, prior *float64, rounds, steps *int)

func (m *flowModel) result(e *flow) *flowResult {
	r := &flowResult{dcg: graph.NewDCG(), calls: make([]float64, e.stacks.Len())}
	for i := range m.e.edges {
		k := &m.e.edges[i]
		if k.v < 0 {
			continue
		}
		s := &m.c.sites[k.site]
		n := math.Exp(m.s.x[k.v])
		r.dcg.Add(graph.Edge{Site: s.addr, Callee: image.Addr{Image: k.callee.fn.Image, Offset: k.callee.fn.Entry}},
			graph.EdgeValues{Samples: k.raw, Calls: n})
	}
	return r
}

var _ = cfg.Graph{}

func (m *flowModel) forces(v int32) {
	s := m.s
	s.linearize()
	fmt.Printf("   var %d x %.5g g %.4g h %.4g info %.4g\n", v, math.Exp(s.x[v]), s.g[v], s.h[v], s.info[v])
	for _, b := range s.bal {
		show := b.sum == v
		a := 1.0
		for _, t := range s.terms[b.first:b.end] {
			if t.v == v {
				show, a = true, -t.a
			}
		}
		if show {
			fmt.Printf("     balance %d: rho %.4g r %.4g force %.4g\n", b.sum, b.rho, b.r, -a*b.rho*b.r)
		}
	}
	for _, p := range s.share {
		if p.part == v || p.whole == v {
			f := p.m * p.t
			if p.whole == v {
				f = -f
			}
			fmt.Printf("     share %d of %d: n %g of %g m %.4g force %.4g\n", p.part, p.whole, p.n, p.of, p.m, f)
		}
	}
}

func (m *flowModel) debugFunc(f *flowFunc) {
	if f == nil || f.g == nil {
		return
	}
	for i, r := range f.g.Runs {
		v := f.blockVar(r.Block)
		n := m.e.runs[int(f.firstRun)+i]
		x := math.Exp(m.s.x[v])
		mu, h := cost(n, x*float64(r.Insts), m.s.sigma)
		b := f.g.Blocks[r.Block]
		if math.Abs(n-mu) > 0.5 {
			fmt.Printf("   %x-%x block %d class %d insts %d rep %v n %g x %.4g mu0 %.4g score %.3g h %.3g reached %v dies %v\n", r.Start, r.End, r.Block, v, r.Insts, r.Repeats, n, x, x*float64(r.Insts), n-mu, h, b.Reached, b.Dies)
		}
	}
}

// FlowDebug is for experiments.
var FlowDebug uint64

func (m *flowModel) debug() {
	for i := range m.e.edges {
		k := &m.e.edges[i]
		s := &m.c.sites[k.site]
		if s.addr.Offset != FlowDebug {
			continue
		}
		f := s.in
		fmt.Printf("site %x -> %x %s leaf %g pool %g entry %g other %g v %d tail %v", s.addr.Offset, k.callee.fn.Entry, k.callee.fn.Name, k.leaf, k.pool, k.entry, k.other, k.v, k.tail)
		if k.v >= 0 {
			fmt.Printf(" x %g E_callee %g slack %g", math.Exp(m.s.x[k.v]), math.Exp(m.s.x[k.callee.entry]), math.Exp(m.s.x[m.slack[k.callee.id]]))
		}
		if f != nil && f.g != nil {
			fmt.Printf("\n   in %x trusted %v doubts %v samples %g E %g slack %g", f.fn.Entry, f.trusted, f.g.Doubts, f.sampled, math.Exp(m.s.x[f.entry]), math.Exp(m.s.x[m.slack[f.id]]))
		}
		fmt.Println()
		for _, r := range m.s.runs {
			if r.v == k.v && false {
				fmt.Printf("   run n %g size %g\n", r.n, r.s)
			}
		}
		for _, b := range m.s.bal {
			show := b.sum == k.v
			for _, t := range m.s.terms[b.first:b.end] {
				show = show || t.v == k.v
			}
			if show && false {
				fmt.Printf("   balance %d %.4g =", b.sum, math.Exp(m.s.x[b.sum]))
				for _, t := range m.s.terms[b.first:b.end] {
					fmt.Printf(" %d %.4g", t.v, math.Exp(m.s.x[t.v]))
				}
				fmt.Println()
			}
		}
		for _, p := range m.s.share {
			if p.part == k.v {
				fmt.Printf("   share %g of %g spread %g: now %g\n", p.n, p.of, p.spread, math.Exp(m.s.x[p.part]-m.s.x[p.whole]))
			}
		}
		for v := k.v - 2; v < k.v+3 && k.v >= 2; v++ {
			m.forces(v)
		}
		m.forces(k.callee.entry)
		fmt.Println("  caller")
		m.debugFunc(f)
		fmt.Println("  callee")
		m.debugFunc(k.callee)
		if k.callee.g != nil {
			for _, r := range m.s.runs {
				if false {
					fmt.Printf("   callee entry run n %g size %g\n", r.n, r.s)
				}
			}
		}
	}
}

func SetFloor(f float64) { flowFloor = f }
