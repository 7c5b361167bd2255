package correct

import (
	"cmp"
	"maps"
	"slices"
)

// flowModel ties the evidence together.
type flowModel struct {
	c   *flowCode
	e   *flowEvidence
	s   *flowSystem
	opt flowTuning

	into  [][]flowInflow // by function
	slack []int32        // by function: entries from where nothing is known
	vars  []int32        // by site
	rate  float64        // samples per instruction and run, guessed for what has no samples
}

// flowInflow is one way into a function.
type flowInflow struct {
	v           int32
	pool, other float64
}

type flowTuning struct {
	sigma, omega, omegaPool float64
	prior                   float64 // weight of branch priors
	rounds, steps, draws    int
}

var defaultFlowTuning = flowTuning{sigma: 0.7, omega: 0.8, omegaPool: 0.05, prior: 0.003, rounds: 30, steps: 60, draws: 16}

func newFlowModel(c *flowCode, e *flowEvidence, t flowTuning) *flowModel {
	m := &flowModel{c: c, e: e, s: &flowSystem{sigma: t.sigma}, opt: t}
	m.allSites()
	m.stubs()
	m.e.extend()
	m.learn()
	m.variables()
	m.sites()
	m.calls()
	m.tails()
	m.entries()
	return m
}

// allSites makes the call sites of all functions known.
func (m *flowModel) allSites() {
	for i, n := 0, len(m.c.list); i < n; i++ {
		f := m.c.list[i]
		if f.g == nil {
			continue
		}
		for _, call := range f.g.Calls {
			if a, ok := f.address(call.Site); ok && !call.Tail {
				m.c.site(a, f)
			}
		}
	}
}

// variables gives every function its variables and what its own code says.
func (m *flowModel) variables() {
	s := m.s
	m.e.extend()
	m.rate = 0.1
	m.into = make([][]flowInflow, len(m.c.list))
	m.slack = make([]int32, len(m.c.list))
	for _, f := range m.c.list {
		if f.g == nil {
			f.entry = s.add(m.guess(m.e.noCode[f], 20))
			if n := m.e.noCode[f]; n > 0 {
				s.observe(f.entry, n, 20)
			}
			continue
		}
		m.ownCode(f)
	}
}

func (m *flowModel) guess(n, size float64) float64 { return (n + flowFloor) / (size + 1) }

const flowFloor = 0.01

func (m *flowModel) ownCode(f *flowFunc) {
	s, g := m.s, f.g
	f.firstVar = int32(len(s.x))
	count := len(g.Blocks)
	if f.trusted {
		count = g.Classes
	}
	n, size := make([]float64, count), make([]float64, count)
	for i, r := range g.Runs {
		v := f.blockVar(r.Block) - f.firstVar
		n[v] += m.e.runs[int(f.firstRun)+i]
		size[v] += float64(r.Insts)
	}
	for i := range count {
		s.add(m.guess(n[i], size[i]))
	}
	for i, r := range g.Runs {
		if r.Repeats || f.trusted && !g.Blocks[r.Block].Reached && m.e.runs[int(f.firstRun)+i] == 0 {
			continue
		}
		m.observe(f.blockVar(r.Block), f.firstRun+int32(i), r.Insts)
	}
	if !f.trusted {
		f.entry = f.firstVar + int32(g.Start)
		return
	}
	f.entry = f.firstVar + int32(g.EntryClass)
	m.conserve(f)
}

// observe enters what a run's samples say. If samples lag, its first
// instructions have samples of whatever ran before, at that code's cost.
func (m *flowModel) observe(v, run int32, insts int) {
	n, head := m.e.runs[run], m.e.heads[run]
	lag := m.e.skid.lag
	if lag == 0 || insts <= lag {
		m.s.observe(v, n, float64(insts))
		return
	}
	m.s.observe(v, head, float64(lag))
	m.s.observe(v, n-head, float64(insts-lag))
}

// conserve adds the balances of blocks: in-edges and out-edges sum up to it.
func (m *flowModel) conserve(f *flowFunc) {
	g := f.g
	ins := make([][]int32, len(g.Blocks))
	ins[g.Start] = append(ins[g.Start], f.entry)
	for i, b := range g.Blocks {
		if !b.Reached || b.Dies {
			continue
		}
		var outs []int32
		for k, t := range b.Succs {
			if b.SuccClass[k] < 0 {
				continue
			}
			v := f.firstVar + int32(b.SuccClass[k])
			outs = append(outs, v)
			if t < len(g.Blocks) {
				ins[t] = append(ins[t], v)
			}
		}
		m.split(f.blockVar(i), outs)
	}
	for i, b := range g.Blocks {
		if b.Reached && !b.Dies {
			m.split(f.blockVar(i), ins[i])
		}
	}
}

// split says that whole is the sum of parts, if that says anything.
func (m *flowModel) split(whole int32, parts []int32) {
	if len(parts) < 2 || slices.Contains(parts, whole) {
		return
	}
	m.s.balance(whole, parts)
	if m.opt.prior > 0 {
		for _, p := range parts {
			m.s.share = append(m.s.share, flowShare{part: p, whole: whole, n: m.opt.prior, of: m.opt.prior * float64(len(parts))})
		}
	}
}

// sites gives every call site a variable.
func (m *flowModel) sites() {
	m.vars = make([]int32, len(m.c.sites))
	for i := range m.c.sites {
		m.vars[i] = m.c.siteVar(&m.c.sites[i])
		if m.vars[i] < 0 {
			m.vars[i] = m.s.add(m.rate)
		}
	}
}

// calls decides which edges are calls and gives them variables.
func (m *flowModel) calls() {
	bySite := map[int32][]int32{}
	for i := range m.e.edges {
		s := m.e.edges[i].site
		bySite[s] = append(bySite[s], int32(i))
	}
	for i := range m.c.sites {
		if s := &m.c.sites[i]; s.target != nil && !s.dies() {
			k := m.e.edge(int32(i), s.target)
			m.e.edges[k].v = m.vars[i]
		}
	}
	for _, s := range slices.Sorted(maps.Keys(bySite)) {
		es := bySite[s]
		t := m.c.sites[s].target
		if t == nil {
			m.indirect(s, es)
			continue
		}
		for _, k := range es {
			if e := &m.e.edges[k]; e.callee != t {
				e.tail = true
			}
		}
	}
}

// stubs corrects what PLT stubs lead to by what was seen behind them:
// implementations chosen at load time, interposed and versioned symbols.
func (m *flowModel) stubs() {
	seen := map[flowEdgeKey]float64{}
	for i := range m.e.edges {
		e := &m.e.edges[i]
		s := &m.c.sites[e.site]
		if s.stub != nil {
			w := e.pool + e.other - e.stub
			seen[flowEdgeKey{int32(m.c.function(s.stub, false).id), e.callee.id}] += w
		}
	}
	best := map[int32]int32{}
	most := map[int32]float64{}
	for k, w := range seen {
		if w > most[k.site] || w == most[k.site] && k.callee < best[k.site] {
			most[k.site], best[k.site] = w, k.callee
		}
	}
	for i := range m.c.sites {
		s := &m.c.sites[i]
		if s.stub == nil {
			continue
		}
		id := m.c.function(s.stub, false).id
		if s.target != nil {
			if w := seen[flowEdgeKey{id, s.target.id}]; w > 0 || m.tailReaches(s.target, m.c.list[best[id]], 3) {
				continue
			}
		}
		if most[id] > 0 {
			to := m.c.list[best[id]]
			if s.target != nil {
				to = m.c.function(beside(s.target.fn, to.fn), true)
				if to.fn != m.c.list[best[id]].fn {
					m.move(int32(i), m.c.list[best[id]], to)
				}
			}
			m.move(int32(i), s.target, to)
			s.target = to
		}
	}
}

// move gives samples in a stub to the function that turned out to be behind it.
func (m *flowModel) move(site int32, from, to *flowFunc) {
	if from == nil {
		return
	}
	k, ok := m.e.edgeAt[flowEdgeKey{site, from.id}]
	if !ok {
		return
	}
	t := m.e.edge(site, to)
	a, b := &m.e.edges[k], &m.e.edges[t]
	b.leaf += a.leaf
	b.raw += a.raw
	b.pool += a.pool
	b.other += a.other
	b.stub += a.stub
	*a = flowEdge{site: a.site, callee: a.callee, v: -1, movedTo: t + 1}
}

// indirect shares an indirect call among the functions seen below it.
func (m *flowModel) indirect(site int32, es []int32) {
	var parts []int32
	for _, k := range es {
		e := &m.e.edges[k]
		for _, o := range es {
			if o != k && m.tailReaches(m.e.edges[o].callee, e.callee, 3) && !m.tailReaches(e.callee, m.e.edges[o].callee, 1) {
				e.tail = true
			}
		}
		if e.tail {
			continue
		}
		e.v = m.s.add(m.guess(e.entry, 15))
		parts = append(parts, e.v)
	}
	m.heads(site, es)
	rest := m.s.add(0.01)
	parts = append(parts, rest)
	m.s.balance(m.vars[site], parts)
	m.s.share = append(m.s.share, flowShare{part: rest, whole: m.vars[site], n: 0.05, of: 1})
}

// heads divides an indirect call by the samples that lag behind it into its
// callees.
func (m *flowModel) heads(site int32, es []int32) {
	sum := 0.0
	for _, k := range es {
		if e := &m.e.edges[k]; e.v >= 0 {
			sum += e.head
		}
	}
	for _, k := range es {
		if e := &m.e.edges[k]; e.v >= 0 && sum > 0 {
			m.s.share = append(m.s.share, flowShare{part: e.v, whole: m.vars[site], n: e.head, of: sum, spread: m.opt.omegaPool})
		}
	}
}

// tailReaches reports whether f leads to g by tail calls.
func (m *flowModel) tailReaches(f, g *flowFunc, depth int) bool {
	if f == nil || f.g == nil || depth == 0 || f == g {
		return false
	}
	for i := range f.g.Calls {
		c := &f.g.Calls[i]
		if !c.Tail || c.Target == 0 {
			continue
		}
		t, _ := m.c.target(f, c.Target)
		if t == g || m.tailReaches(t, g, depth-1) {
			return true
		}
	}
	return false
}

// tails adds the entries by tail calls.
func (m *flowModel) tails() {
	for i, n := 0, len(m.c.list); i < n; i++ {
		f := m.c.list[i]
		if f.g == nil {
			continue
		}
		for _, call := range f.g.Calls {
			if !call.Tail || f.trusted && !f.g.Blocks[call.Block].Reached {
				continue
			}
			if t, _ := m.c.target(f, call.Target); t != nil && int(t.id) < len(m.into) && t != f {
				v := f.blockVar(call.Block)
				if f.trusted { // a conditional jump leaves only when taken
					b := &f.g.Blocks[call.Block]
					for k, s := range b.Succs {
						if s == f.g.Exit() && b.SuccClass[k] >= 0 {
							v = f.firstVar + int32(b.SuccClass[k])
						}
					}
				}
				m.into[t.id] = append(m.into[t.id], flowInflow{v: v})
			}
		}
	}
}

// entries balances the ways into every function and shares its samples among
// them.
func (m *flowModel) entries() {
	lost := make([]flowInflow, len(m.c.list)) // samples by ways not known
	for i := range m.e.edges {
		e := &m.e.edges[i]
		if int(e.callee.id) >= len(m.into) {
			continue
		}
		if e.v >= 0 {
			m.into[e.callee.id] = append(m.into[e.callee.id], flowInflow{e.v, e.pool, e.other})
			continue
		}
		m.viaTail(e, lost)
	}
	for id, in := range m.into {
		f := m.c.list[id]
		if f.fn.Stub {
			continue
		}
		m.enter(f, merge(in), lost[id])
	}
}

// viaTail gives the samples of a function reached by tail calls to the tail
// call that leads there: of the function called at the site, or the only one.
func (m *flowModel) viaTail(e *flowEdge, lost []flowInflow) {
	t := m.c.sites[e.site].target
	in := m.into[e.callee.id]
	best := -1
	for i := range in {
		if in[i].pool < 0 {
			continue
		}
		if t != nil && t.trusted && in[i].v >= t.firstVar && in[i].v < t.firstVar+int32(t.g.Classes) {
			best = i
			break
		}
	}
	if best < 0 {
		lost[e.callee.id].pool += e.pool
		lost[e.callee.id].other += e.other
		return
	}
	in[best].pool += e.pool
	in[best].other += e.other
}

// merge joins inflows of one variable.
func merge(in []flowInflow) []flowInflow {
	slices.SortStableFunc(in, func(a, b flowInflow) int { return cmp.Compare(a.v, b.v) })
	return in
}

func (m *flowModel) enter(f *flowFunc, in []flowInflow, lost flowInflow) {
	s := m.s
	u := s.add((lost.pool + 0.01) / 20)
	m.slack[f.id] = u
	parts := []int32{u}
	pool, other := lost.pool, lost.other
	for _, i := range in {
		parts = append(parts, i.v)
		pool += i.pool
		other += i.other
	}
	s.balance(f.entry, parts)
	s.share = append(s.share, flowShare{part: u, whole: f.entry, n: 0.01, of: 1})
	lost.v = u
	for k := -1; k < len(in); k++ {
		i := lost
		if k >= 0 {
			i = in[k]
		}
		if pool > 0 {
			s.share = append(s.share, flowShare{part: i.v, whole: f.entry, n: i.pool, of: pool, spread: m.opt.omegaPool})
		}
		if other > 0 {
			s.share = append(s.share, flowShare{part: i.v, whole: f.entry, n: i.other, of: other, spread: m.opt.omega})
		}
	}
}
