package cfg

import (
	"cmp"
	"slices"
)

// blocks cuts the decoded instructions into basic blocks and ties them.
func (d *decoder) blocks() {
	g := d.g
	pcs := make([]uint64, 0, len(d.insts))
	for pc := range d.insts {
		pcs = append(pcs, pc)
	}
	slices.Sort(pcs)
	index := map[uint64]int{}
	for i, pc := range pcs {
		in := d.insts[pc]
		last := len(g.Blocks) - 1
		switch {
		case d.leader[pc], last < 0, i > 0 && g.Blocks[last].End != pc:
			index[pc] = len(g.Blocks)
			g.Blocks = append(g.Blocks, Block{Start: pc})
			last++
		}
		if _, ended := d.succs[g.Blocks[last].Last]; ended && g.Blocks[last].Insts > 0 {
			index[pc] = len(g.Blocks)
			g.Blocks = append(g.Blocks, Block{Start: pc})
			last++
		}
		b := &g.Blocks[last]
		b.End, b.Last, b.LastKind = in.End(), pc, in.Control
		b.Insts++
	}
	d.edges(index)
	d.attachCalls()
	g.Start = index[g.Entry]
}

// edges turns successor addresses into block indices. A block that ends
// because the next one begins falls through to it.
func (d *decoder) edges(index map[uint64]int) {
	g := d.g
	for i := range g.Blocks {
		b := &g.Blocks[i]
		targets, ended := d.succs[b.Last]
		if !ended {
			targets = []uint64{b.End}
		}
		for _, t := range targets {
			s, ok := index[t]
			if !ok {
				s = g.Exit() // left, or code that could not be decoded
			}
			if !slices.Contains(b.Succs, s) || b.LastKind.Conditional() {
				b.Succs = append(b.Succs, s)
			}
		}
	}
}

func (d *decoder) attachCalls() {
	slices.SortFunc(d.calls, func(a, b Call) int { return cmp.Compare(a.Site, b.Site) })
	for _, c := range d.calls {
		if c.Block = d.g.BlockAt(c.Site); c.Block >= 0 {
			d.g.Calls = append(d.g.Calls, c)
		}
	}
}

// classes fills Class and Reached. A loop without way out gets an edge to the
// exit, as in the theory every block must reach it.
func (d *decoder) classes() {
	g := d.g
	succs := make([][]int, len(g.Blocks))
	for i, b := range g.Blocks {
		succs[i] = b.Succs
	}
	live := reachable(succs, g.Start)
	for i, leads := range leadsToExit(succs) {
		if live[i] && !leads {
			succs[i] = append(slices.Clip(succs[i]), g.Exit())
			break // one way out of the loop is enough, if loops are not nested
		}
	}
	for i, c := range classes(succs, g.Start) {
		g.Blocks[i].Class = c
		g.Blocks[i].Reached = live[i]
	}
}

// leadsToExit marks the blocks from which some path leads to the exit.
func leadsToExit(succs [][]int) []bool {
	n := len(succs)
	preds := make([][]int, n+1)
	for b, ss := range succs {
		for _, s := range ss {
			preds[s] = append(preds[s], b)
		}
	}
	leads := make([]bool, n+1)
	leads[n] = true
	for todo := []int{n}; len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, b := range preds[s] {
			if !leads[b] {
				leads[b] = true
				todo = append(todo, b)
			}
		}
	}
	return leads[:n]
}
