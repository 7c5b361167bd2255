package graph

import (
	"math"

	"github.com/perfcorrect/perfcorrect/image"
)

// Resolver knows the code at a location. image.Store is one.
type Resolver interface {
	Addr(image.Loc) image.Addr
	Function(image.Loc) *image.Function
	// CallSite returns the address of the call before a return address.
	CallSite(image.Loc) image.Addr
	// ResolvePLT returns the function a stub jumps to, nil if not found, and
	// any other function itself.
	ResolvePLT(*image.Function) *image.Function
}

// LeafEdges returns the leaf edge of each stack: the call instruction before
// the second frame's return address calls the function the leaf is in. An edge
// has the sums of Samples and Calls of its stacks.
//
// Calls through a PLT are edges to the function behind the stub: a stub jumps,
// so it is never a caller, and if it is the leaf it stands for its target.
//
// Stderr is that of Calls if every sample of an edge weighs the same and
// samples are independent, Calls/sqrt(Samples): it knows nothing of bias, and
// too little of what neighbouring samples share.
//
// What gives no edge is counted in Dropped. A frame that is not a return
// address begins another mode (the user code a system call or interrupt came
// from), and entering the kernel is not a call; neither is a leaf reached that
// way an edge of the user function.
func LeafEdges(s *Stacks, r Resolver) *DCG {
	g := NewDCG()
	l := leafs{r: r, sites: map[image.Loc]site{}, callees: map[image.Loc]callee{}}
	for st, v := range s.All() {
		e, why, ok := l.edge(st.Frames)
		if !ok {
			g.Dropped[why].add(v)
			continue
		}
		w := g.edges[e]
		w.Samples += v.Samples
		w.Calls += v.Calls
		g.edges[e] = w
	}
	for e, v := range g.edges {
		v.Stderr = math.NaN()
		if v.Samples > 0 {
			v.Stderr = v.Calls / math.Sqrt(float64(v.Samples))
		}
		g.edges[e] = v
	}
	return g
}

// LeafEdge finds the leaf edges of stacks one by one.
type LeafEdge struct{ leafs }

// NewLeafEdge returns one for stacks whose Locs r knows.
func NewLeafEdge(r Resolver) *LeafEdge {
	return &LeafEdge{leafs{r: r, sites: map[image.Loc]site{}, callees: map[image.Loc]callee{}}}
}

// Of returns the leaf edge of a stack as LeafEdges has it, or why there is none.
func (l *LeafEdge) Of(frames []image.Loc) (Edge, Reason, bool) { return l.edge(frames) }

// leafs remembers what the ends of edges resolve to: leaves and callers are
// far fewer than stacks.
type leafs struct {
	r       Resolver
	sites   map[image.Loc]site
	callees map[image.Loc]callee
}

type site struct {
	addr   image.Addr
	isCall bool // a return address
}

type callee struct {
	entry  image.Addr
	why    Reason // if entry.Image is nil
	kernel bool   // the leaf, for the target may not be known
}

func (l *leafs) edge(frames []image.Loc) (e Edge, why Reason, ok bool) {
	switch len(frames) {
	case 0:
		return Edge{}, NoFrames, false
	case 1:
		return Edge{}, NoCaller, false
	}
	from, to := l.site(frames[1]), l.callee(frames[0])
	switch {
	case !from.isCall || inKernel(from.addr.Image) != to.kernel && known(from.addr.Image):
		return Edge{}, ModeChange, false
	case !known(from.addr.Image):
		return Edge{}, UnknownCaller, false
	case to.entry.Image == nil:
		return Edge{}, to.why, false
	}
	return Edge{Site: from.addr, Callee: to.entry}, 0, true
}

func (l *leafs) site(loc image.Loc) site {
	if s, ok := l.sites[loc]; ok {
		return s
	}
	s := site{addr: l.r.Addr(loc)}
	if s.addr.Return {
		s = site{addr: l.r.CallSite(loc), isCall: true}
		s.addr.Return = false
	}
	l.sites[loc] = s
	return s
}

func (l *leafs) callee(loc image.Loc) callee {
	if c, ok := l.callees[loc]; ok {
		return c
	}
	c := callee{why: UnknownCallee, kernel: inKernel(l.r.Addr(loc).Image)}
	if f := l.r.Function(loc); f != nil {
		target := f
		if f.Stub {
			target = l.r.ResolvePLT(f)
		}
		if target != nil && !target.Stub {
			c.entry = image.Addr{Image: target.Image, Offset: target.Entry}
		} else {
			c.why = UnknownTarget
		}
	}
	l.callees[loc] = c
	return c
}

func inKernel(im *image.Image) bool {
	if im == nil {
		return false
	}
	return im.Kind == image.Kernel || im.Kind == image.Module || im.Kind == image.BPF
}

func known(im *image.Image) bool { return im != nil && im.Kind != image.Unknown }
