package cfg

// classes numbers the control-equivalent classes of a flow graph: two blocks
// are in one class if every execution of the function runs them equally often.
//
// With an edge from the exit to the entry every execution is a cycle, and two
// blocks run equally often in all of them exactly if they lie on the same
// cycles; in a strongly connected graph it does not matter whether cycles are
// directed (Johnson, Pearson and Pingali 1994, theorem 5). Cycle equivalence
// of undirected edges shows in a spanning tree: give every edge outside the
// tree a random label, and every edge of the tree the XOR of the labels of
// the cycles that go through it; edges lie on the same cycles exactly if their
// labels are equal (but for a collision of 64-bit hashes). A block is taken
// for an edge from its head to its tail, so that blocks can be compared.
//
// succs lists the successors of each block, exit meaning len(succs) and -1 an
// edge to be left out. Blocks
// that no path connects with entry and exit get classes of their own.
func classes(succs [][]int, entry int) []int { return classify(succs, entry).block }

// classification is what classify found: the class of each block, of each of
// its out-edges (-1 from blocks that are not reached), and of the edge that
// enters the function.
type classification struct {
	block []int
	edge  [][]int
	entry int
	count int
}

func classify(succs [][]int, entry int) classification {
	n := len(succs)
	g := newUndirected(2 * (n + 1)) // node 2b is the head of block b, 2b+1 its tail
	blockEdge := make([]int, n+1)
	for b := range n + 1 {
		blockEdge[b] = g.add(2*b, 2*b+1)
	}
	live := reachable(succs, entry)
	flow := make([][]int, n)
	for b, ss := range succs {
		flow[b] = make([]int, len(ss))
		for k, s := range ss {
			flow[b][k] = -1
			if live[b] && s >= 0 { // dead code must not close cycles
				flow[b][k] = g.add(2*b+1, 2*s)
			}
		}
	}
	enter := g.add(2*n+1, 2*entry)
	label := g.cycleLabels(2 * entry)

	number := map[uint64]int{}
	c := classification{block: make([]int, n), edge: flow}
	class := func(e int) int {
		i, ok := number[label[e]]
		if !ok || label[e] == 0 { // no cycle goes through it
			i = c.count
			c.count++
			number[label[e]] = i
		}
		return i
	}
	for b := range n {
		c.block[b] = class(blockEdge[b])
	}
	for _, es := range flow {
		for k, e := range es {
			if e >= 0 {
				es[k] = class(e)
			}
		}
	}
	c.entry = class(enter)
	return c
}

// reachable marks the blocks some path from the entry leads to.
func reachable(succs [][]int, entry int) []bool {
	live := make([]bool, len(succs)+1)
	live[entry] = true
	for todo := []int{entry}; len(todo) > 0; {
		b := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if b == len(succs) {
			continue
		}
		for _, s := range succs[b] {
			if s >= 0 && !live[s] {
				live[s] = true
				todo = append(todo, s)
			}
		}
	}
	return live
}

// undirected is a multigraph in adjacency lists.
type undirected struct {
	ends [][2]int
	at   [][]int // edges at each node
}

func newUndirected(nodes int) *undirected { return &undirected{at: make([][]int, nodes)} }

func (g *undirected) add(a, b int) int {
	e := len(g.ends)
	g.ends = append(g.ends, [2]int{a, b})
	g.at[a] = append(g.at[a], e)
	if a != b {
		g.at[b] = append(g.at[b], e)
	}
	return e
}

func (g *undirected) other(e, node int) int {
	return g.ends[e][0] + g.ends[e][1] - node
}

// cycleLabels returns the label of every edge: 0 for one on no cycle, and for
// edges that cannot be reached from root.
func (g *undirected) cycleLabels(root int) []uint64 {
	order, via := g.spanningTree(root)
	label := make([]uint64, len(g.ends))
	covers := make([]uint64, len(g.at)) // XOR of the labels of the edges outside the tree at the nodes below
	for e, ends := range g.ends {
		inTree := via[ends[0]] == e || via[ends[1]] == e
		reached := ends[0] == root || via[ends[0]] >= 0
		if inTree || !reached || ends[0] == ends[1] {
			continue
		}
		label[e] = splitmix64(uint64(e) + 1)
		covers[ends[0]] ^= label[e]
		covers[ends[1]] ^= label[e]
	}
	for i := len(order) - 1; i > 0; i-- {
		v := order[i]
		label[via[v]] = covers[v]
		covers[g.other(via[v], v)] ^= covers[v]
	}
	return label
}

// spanningTree returns the nodes in the order they were reached and the tree
// edge each was reached by (-1 for the root and for nodes out of reach).
func (g *undirected) spanningTree(root int) (order, via []int) {
	via = make([]int, len(g.at))
	for i := range via {
		via[i] = -1
	}
	seen := make([]bool, len(g.at))
	seen[root] = true
	order = append(order, root)
	for i := 0; i < len(order); i++ {
		v := order[i]
		for _, e := range g.at[v] {
			if w := g.other(e, v); !seen[w] {
				seen[w] = true
				via[w] = e
				order = append(order, w)
			}
		}
	}
	return order, via
}

// splitmix64 spreads consecutive numbers over 64 bits (Steele, Lea and Flood
// 2014). Labels made so are the same in every run.
func splitmix64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
