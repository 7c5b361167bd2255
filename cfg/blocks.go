package cfg

import (
	"cmp"
	"slices"

	"github.com/perfcorrect/perfcorrect/image/x86"
	"golang.org/x/arch/x86/x86asm"
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
		d.addRun(&in, last)
	}
	d.edges(index)
	d.attachCalls()
	g.Start = index[g.Entry]
}

// addRun adds an instruction to the latest run or begins one.
func (d *decoder) addRun(in *x86.Inst, block int) {
	g := d.g
	n := len(g.Runs) - 1
	if n < 0 || g.Runs[n].Block != block || d.runEnds {
		g.Runs = append(g.Runs, Run{Start: in.PC, Block: block})
		n++
	}
	r := &g.Runs[n]
	r.End = in.End()
	r.Insts++
	r.Repeats = r.Repeats || repeats(in)
	d.runEnds = in.Control != x86.Next
}

// repeats reports whether an instruction has a REP prefix that repeats it.
func repeats(in *x86.Inst) bool {
	switch in.Asm.Op {
	case x86asm.MOVSB, x86asm.MOVSW, x86asm.MOVSD, x86asm.MOVSQ, x86asm.STOSB, x86asm.STOSW, x86asm.STOSD, x86asm.STOSQ,
		x86asm.CMPSB, x86asm.CMPSW, x86asm.CMPSD, x86asm.CMPSQ, x86asm.SCASB, x86asm.SCASW, x86asm.SCASD, x86asm.SCASQ,
		x86asm.LODSB, x86asm.LODSW, x86asm.LODSD, x86asm.LODSQ:
	default:
		return false
	}
	for _, p := range in.Asm.Prefix {
		if p&0xff == x86asm.PrefixREP&0xff || p&0xff == x86asm.PrefixREPN&0xff {
			return true
		}
	}
	return false
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
	dies := g.dying(succs)
	alive := make([][]int, len(succs))
	for i, ss := range succs {
		for _, t := range ss {
			if t < len(g.Blocks) && dies[t] {
				t = -1
			}
			alive[i] = append(alive[i], t)
		}
	}
	c := classify(alive, g.Start)
	g.EntryClass, g.Classes = c.entry, c.count
	for i := range g.Blocks {
		b := &g.Blocks[i]
		b.Class, b.Reached, b.Dies = c.block[i], live[i], dies[i]
		b.SuccClass = c.edge[i][:len(b.Succs)]
	}
}

// dying marks the blocks whose every way out of the function is a call that
// never returns, or a trap; none if that holds for the whole function.
func (g *Graph) dying(succs [][]int) []bool {
	dies := make([]bool, len(succs))
	ends := make([]bool, len(succs))
	for _, c := range g.Calls {
		ends[c.Block] = ends[c.Block] || c.NoReturn
	}
	normal := slices.Clone(succs)
	for i := range normal {
		if ends[i] || g.Blocks[i].LastKind == x86.Trap {
			normal[i] = nil
		}
	}
	if len(succs) == 0 {
		return dies
	}
	any, returns := leadsToExit(succs), leadsToExit(normal)
	if g.Returns = returns[g.Start]; !g.Returns {
		return dies
	}
	for i := range dies {
		dies[i] = any[i] && !returns[i]
	}
	return dies
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
