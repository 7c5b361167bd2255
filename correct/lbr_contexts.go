package correct

import "slices"

const (
	maxWindow = 16 // records of a window, if stacks have twice as many
	depth     = 4  // newest records that make a context
	rounds    = 2
	pseudo    = 2       // observations of the shorter context
	maxNodes  = 1 << 18 // contexts that are told apart; what is new then counts for its shorter ones
)

// contexts is a tree of what was newest when gaps followed: a node is its
// parent's records and one older. Node 0 knows nothing.
type contexts struct {
	window int
	nodes  pairs                // (parent, type of record)
	seen   []gapStat            // of earlier blocks, of contexts that end in the node
	mean   [][maxWindow]float32 // mean time of the next gap, the next two, ...; by node
}

// gapStat are weighted sums of spans: of the next gap, the next two, ...
type gapStat struct {
	w float32
	s [maxWindow]float32
}

func (g *gapStat) add(o *gapStat) {
	g.w += o.w
	for i := range g.s {
		g.s[i] += o.s[i]
	}
}

func (c *contexts) clone() contexts {
	return contexts{
		window: c.window,
		nodes:  pairs{keys: slices.Clone(c.nodes.keys), slots: slices.Clone(c.nodes.slots)},
		seen:   slices.Clone(c.seen),
	}
}

// begin makes node 0, its own parent, and the window: half of the longest
// stack, so that the other half has seen what followed it.
func (c *contexts) begin(b *block) {
	if c.nodes.len() > 0 {
		return
	}
	c.nodes.id(0, ^uint32(0))
	longest := uint16(0)
	for i := range b.samples {
		longest = max(longest, b.samples[i].n)
	}
	c.window = min(max(int(longest)/2, 1), maxWindow)
}

// node returns the context of records ids, newest first: of as many as there
// are up to depth.
func (c *contexts) node(ids []uint32) uint32 {
	at := uint32(0)
	for _, id := range ids[:min(depth, len(ids))] {
		if c.nodes.len() < maxNodes {
			at, _ = c.nodes.id(at, id)
			continue
		}
		next, ok := c.nodes.find(at, id)
		if !ok {
			break
		}
		at = next
	}
	return at
}

// means turns sums into the mean spans of each node, drawn towards those of
// its parent. own are the sums of contexts that end in the node; it becomes
// those of all below. Nodes come after their parents.
func (c *contexts) means(own []gapStat) {
	for n := len(own) - 1; n > 0; n-- {
		parent, _ := c.nodes.at(uint32(n))
		own[parent].add(&own[n])
	}
	c.mean = slices.Grow(c.mean[:0], len(own))[:len(own)]
	for n := range own {
		g, f := &own[n], &c.mean[n]
		if n == 0 {
			for i := range f {
				f[i] = float32(i + 1)
				if g.w > 0 {
					f[i] = g.s[i] / g.w
				}
			}
			continue
		}
		parent, _ := c.nodes.at(uint32(n))
		p := &c.mean[parent]
		for i := range f {
			f[i] = (g.s[i] + pseudo*p[i]) / (g.w + pseudo)
		}
	}
}
