package correct

// simple estimates the edges that samples show from few blocks each, without
// the balances of flow:
//
//	entry: n(s,f) x (n_entry+1)/(S_entry + 1/(r n_f)) / n_f
//	tree:  (N_site + N_tree + 1/2) / (S_site + S_tree + 1/(2 entry))
//
// n(s,f) are the samples in f called from s, n_f all in f, n_entry those in its
// entry block of S_entry instructions, r the mean of n/S; N_site and S_site
// samples and instructions of the class of the call site, N_tree and S_tree of
// all code that a call of f runs exactly once.
func (m *flowModel) simple(how FlowModel) *flowResult {
	r := m.newResult()
	insts := 0.0
	for _, f := range m.c.list {
		if f.g != nil && f.sampled > 0 {
			for _, run := range f.g.Runs {
				insts += float64(run.Insts)
			}
		}
	}
	rate := (m.e.total + 1) / (insts + 1)
	trees := map[*flowFunc]float64{}
	for i := range m.e.edges {
		e := &m.e.edges[i]
		if e.v < 0 || e.leaf <= 0 {
			continue
		}
		c := m.entryRate(e, rate)
		if how == FlowTree {
			n, size := m.siteClass(e.site)
			tree := m.tree(e.callee, trees, 8)
			c = (n + e.pool + 0.5) / (size + tree + 0.5/max(c, 1e-9))
		}
		r.edges = append(r.edges, flowCall{edge: int32(i), calls: c})
	}
	return r
}

func (m *flowModel) entryRate(e *flowEdge, rate float64) float64 {
	f := e.callee
	n, size := 0.0, 0.0
	if f.g != nil {
		for i, run := range f.g.Runs {
			if run.Block == f.g.Start {
				n += m.e.runs[int(f.firstRun)+i]
				size += float64(run.Insts)
			}
		}
	}
	all := max(f.sampled, e.leaf)
	return e.leaf * (n + 1) / (size + 1/(rate*all)) / all
}

// siteClass returns samples and instructions of the class a call site is in.
func (m *flowModel) siteClass(site int32) (n, size float64) {
	s := &m.c.sites[site]
	if s.call < 0 {
		return 0, 0
	}
	v := m.c.siteVar(s)
	for i, run := range s.in.g.Runs {
		if s.in.blockVar(run.Block) == v && !run.Repeats {
			n += m.e.runs[int(s.in.firstRun)+i]
			size += float64(run.Insts)
		}
	}
	return n, size
}

// tree returns the instructions that a call of f executes exactly once, in f
// and certainly below it.
func (m *flowModel) tree(f *flowFunc, known map[*flowFunc]float64, depth int) float64 {
	if f == nil || f.g == nil || depth == 0 {
		return 0
	}
	if t, ok := known[f]; ok {
		return t
	}
	known[f] = 0 // recursion
	sum := 0.0
	for i, run := range f.g.Runs {
		if f.certain[i] {
			sum += float64(run.Insts)
		}
	}
	for _, c := range f.g.Calls {
		if c.Tail || !f.once(c.Block) {
			continue
		}
		if a, ok := f.address(c.Site); ok {
			sum += m.tree(m.c.sites[m.c.site(a, f)].target, known, depth-1)
		}
	}
	known[f] = sum
	return sum
}
