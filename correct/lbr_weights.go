package correct

import "slices"

// weigher computes the weights of a block and adds its calls to the sums.
type weigher struct {
	*lbr
	x     [maxStack]float32 // weights of the latest sample's records
	nodes []uint32          // by record of the block: the context of what follows it
	unit  float32           // mean weight of a sample
	plain bool              // x is one over the calls of the stack
}

func (w *weigher) run() {
	b := &w.block
	b.byThread()
	w.plain = w.weighing != weighGaps || !w.rec.cycles || w.ofCalls(w.event)
	for i := range b.samples {
		s := &b.samples[i]
		for _, id := range b.ids[s.at : s.at+uint32(s.n)] {
			if w.rec.isEdge(id) {
				s.edges++
			}
		}
	}
	if !w.plain {
		w.learn()
	}
	for i := range b.samples {
		s := &b.samples[i]
		w.weigh(s)
		s.weight = 0
		for j, id := range b.ids[s.at : s.at+uint32(s.n)] {
			if w.rec.isEdge(id) {
				s.weight += w.x[j]
			}
		}
	}
	w.calibrate()
}

// learn finds the spans that follow each context, and the contexts' weights,
// in turns.
func (w *weigher) learn() {
	b, c := &w.block, &w.ctx
	c.begin(b)
	w.nodes = make([]uint32, len(b.ids))
	for i := range b.samples {
		s := &b.samples[i]
		ids := b.ids[s.at : s.at+uint32(s.n)]
		s.context = c.node(ids)
		for j := c.window; j < len(ids); j++ {
			w.nodes[int(s.at)+j] = c.node(ids[j:])
		}
	}
	w.spanWeights()
	for r := range rounds {
		own := w.observe()
		if r == rounds-1 {
			c.seen = slices.Clone(own)
		}
		c.means(own)
		for i := range b.samples {
			s := &b.samples[i]
			w.weigh(s)
			s.w = 0
			for _, x := range w.x[:s.n] {
				s.w += x
			}
			s.w /= float32(s.n)
		}
		w.normalize()
	}
	w.nodes = nil
}

// spanWeights starts from 1/span.
func (w *weigher) spanWeights() {
	b := &w.block
	for i := range b.samples {
		s := &b.samples[i]
		span := float32(1)
		for _, g := range b.gaps[s.at : s.at+uint32(s.n)-1] {
			span += g
		}
		s.w = float32(s.n) / span
	}
	w.normalize()
}

// normalize makes the mean weight of samples 1, the unit in which contexts
// count observations.
func (w *weigher) normalize() {
	sum := 0.0
	for i := range w.block.samples {
		sum += float64(w.block.samples[i].w)
	}
	w.unit = float32(sum / float64(len(w.block.samples)))
	if !(w.unit > 0) {
		w.unit = 1
	}
}

// observe adds up the spans inside the block's stacks, by context.
func (w *weigher) observe() []gapStat {
	b, c := &w.block, &w.ctx
	own := make([]gapStat, c.nodes.len())
	copy(own, c.seen)
	for i := range b.samples {
		s := &b.samples[i]
		weight := s.w / w.unit
		gaps := b.gaps[s.at : s.at+uint32(s.n)]
		nodes := w.nodes[s.at:]
		for j := c.window; j < len(gaps); j++ {
			g := &own[nodes[j]]
			g.w += weight
			next := gaps[j-c.window : j]
			span := float32(0)
			for k := range next {
				span += weight * next[len(next)-1-k]
				g.s[k&(maxWindow-1)] += span
			}
		}
	}
	return own
}

// weigh sets x for the records of a sample, per cycle.
func (w *weigher) weigh(s *stackSample) {
	if w.plain {
		for j := range w.x[:s.n] {
			w.x[j] = 1 / float32(max(s.edges, 1))
		}
		return
	}
	f := &w.ctx.mean[s.context]
	gaps := w.block.gaps[s.at : s.at+uint32(s.n)]
	m := w.ctx.window
	for start := 0; start < len(gaps); start += m {
		n := min(m, len(gaps)-start)
		if n == m && start > 0 { // as the first window
			copy(w.x[start:start+n], w.x[:n])
			continue
		}
		v := float32(0) // of the newest gaps, whatever the window
		for q := range n {
			w.x[start+q] = 1 / max(v+f[n-1-q], 1)
			v += gaps[q]
		}
	}
}
