package correct

import (
	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
)

// flowEdge is a call site and a function seen right above it on stacks. That
// is a call, unless the function was reached from the one called by tail calls.
type flowEdge struct {
	site   int32
	callee *flowFunc
	leaf   float64 // samples in callee
	raw    int64   // the same, not weighted
	pool   float64 // of code that each call runs exactly once, in callee or below
	entry  float64 // of pool: in callee itself
	head   float64 // in callee: of the instructions before the call, if samples lag
	other  float64 // all other samples below the edge
	stub   float64 // of leaf: in a PLT stub that leads to callee
	stamp  int32   // the latest stack that had it

	v       int32 // variable; -1 if no call
	tail    bool  // reached by tail calls
	movedTo int32 // number of the edge that got the samples, plus one
}

// flowEvidence is what samples say, by place.
type flowEvidence struct {
	c      *flowCode
	skid   *flowSkid
	edges  []flowEdge
	edgeAt map[flowEdgeKey]int32
	runs   []float64         // samples by run
	heads  map[int32]float64 // of these, by run: due to what ran before, if samples lag
	noCode map[*flowFunc]float64
	total  float64
	drops  [graph.NumReasons]graph.Values
	leafs  []int32 // edge of each stack, -1 if none
}

type flowEdgeKey struct {
	site   int32
	callee int32
}

func newFlowEvidence(c *flowCode) *flowEvidence {
	return &flowEvidence{c: c, skid: newFlowSkid(c), heads: map[int32]float64{}, edgeAt: map[flowEdgeKey]int32{}, noCode: map[*flowFunc]float64{}}
}

func (e *flowEvidence) edge(site int32, callee *flowFunc) int32 {
	k := flowEdgeKey{site, callee.id}
	i, ok := e.edgeAt[k]
	if !ok {
		i = int32(len(e.edges))
		e.edgeAt[k] = i
		e.edges = append(e.edges, flowEdge{site: site, callee: callee, stamp: -1, v: -1})
	}
	return i
}

// add counts the samples of one stack.
func (e *flowEvidence) add(index int32, frames []image.Loc, v graph.Values, weight float64) {
	e.leafs = append(e.leafs, -1)
	if len(frames) == 0 {
		e.drops[graph.NoFrames].Samples += v.Samples
		return
	}
	leaf := e.c.loc(frames[0])
	e.observe(frames[0], &leaf, weight)
	if why, ok := e.noEdge(frames, &leaf); !ok {
		e.drops[why].Samples += v.Samples
		e.drops[why].Event += v.Event
		if leaf.f == nil || why == graph.ModeChange {
			return
		}
	}
	e.walk(index, frames, &leaf, v, weight)
}

func (e *flowEvidence) observe(l image.Loc, leaf *flowLoc, weight float64) {
	if leaf.f == nil || leaf.stub != nil {
		return
	}
	e.total += weight
	leaf.f.sampled += weight
	if leaf.run < 0 {
		e.noCode[leaf.f] += weight
		return
	}
	i := int(leaf.f.firstRun + leaf.run)
	for len(e.runs) <= i {
		e.runs = append(e.runs, make([]float64, max(1024, i+1-len(e.runs)))...)
	}
	e.runs[i] += weight
	if e.skid.lag > 0 {
		if p := e.skid.position(l, leaf); p >= 0 && p < e.skid.lag {
			e.heads[int32(i)] += weight
		}
	}
}

// noEdge is the rule of graph.LeafEdges for what is no call.
func (e *flowEvidence) noEdge(frames []image.Loc, leaf *flowLoc) (graph.Reason, bool) {
	if len(frames) == 1 {
		return graph.NoCaller, false
	}
	from := e.c.loc(frames[1])
	switch {
	case from.site < 0 || from.mode != leaf.mode:
		return graph.ModeChange, false
	case leaf.f == nil:
		return graph.UnknownCallee, false
	}
	if im := e.c.sites[from.site].addr.Image; im == nil || im.Kind == image.Unknown {
		return graph.UnknownCaller, false
	}
	return 0, true
}

// walk follows the stack from the leaf up: its samples are caused by every
// edge on it, and certainly once by those below which only code lies that each
// call runs exactly once.
func (e *flowEvidence) walk(index int32, frames []image.Loc, leaf *flowLoc, v graph.Values, weight float64) {
	f := leaf.f
	certain := leaf.stub != nil || leaf.run >= 0 && f.certain[leaf.run]
	for i := 1; i < len(frames); i++ {
		at := e.c.loc(frames[i])
		if at.site < 0 || f == nil {
			return
		}
		k := e.edge(at.site, f)
		g := &e.edges[k]
		if i == 1 {
			g.leaf += weight
			g.raw += v.Samples
			g.head += weight * e.skid.head(frames[0], leaf)
			if leaf.stub != nil {
				g.stub += weight
			}
			e.leafs[index] = k
		}
		switch {
		case certain:
			g.pool += weight
			if i == 1 {
				g.entry += weight
			}
			g.stamp = index
		case g.stamp != index:
			g.stamp = index
			g.other += weight
		}
		s := &e.c.sites[at.site]
		certain = certain && s.call >= 0 && s.target == f && s.in.once(s.in.g.Calls[s.call].Block)
		f = s.in
	}
}

// extend makes room for the runs of functions decoded since.
func (e *flowEvidence) extend() {
	e.runs = append(e.runs, make([]float64, max(0, e.c.runs-len(e.runs)))...)
}
