package graph

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/perfcorrect/perfcorrect/image"
)

// Edge is one edge of the dynamic call graph: a call instruction and what it
// calls. The caller is the function Site lies in.
type Edge struct {
	Site   image.Addr // of the call instruction
	Callee image.Addr // entry of the function called
}

// EdgeValues are the weights of an edge.
type EdgeValues struct {
	Samples int64   // observations: samples whose leaf edge it is, call records...
	Calls   float64 // estimated calls
	// Stderr is the standard error of Calls, in calls; NaN if not known.
	Stderr float64
}

// add sums two independent estimates: their variances add.
func (v *EdgeValues) add(w EdgeValues) {
	v.Samples += w.Samples
	v.Calls += w.Calls
	v.Stderr = math.Hypot(v.Stderr, w.Stderr)
}

// DCG is a dynamic call graph: its edges, and what observations gave none.
type DCG struct {
	edges map[Edge]EdgeValues
	// Dropped are the observations that are no call, or an unknown one, by
	// reason.
	Dropped [NumReasons]Values
}

// Reason says why an observation gave no edge.
type Reason uint8

const (
	NoFrames      Reason = iota // the stack is empty
	NoCaller                    // a single frame: nothing called it, or the caller is lost
	ModeChange                  // leaf and caller are in different modes: an entry into the kernel, not a call
	UnknownCaller               // the caller is not in any known image
	UnknownCallee               // no function is known at the leaf, so neither is its entry
	UnknownTarget               // the leaf is a PLT stub whose target was not found
	NumReasons
)

var reasons = [NumReasons]string{
	NoFrames:      "no stack",
	NoCaller:      "no caller on the stack",
	ModeChange:    "entry from user code into the kernel",
	UnknownCaller: "caller outside of known images",
	UnknownCallee: "no function known at the leaf",
	UnknownTarget: "PLT stub of an unknown function",
}

func (r Reason) String() string { return reasons[r] }

// NewDCG returns an empty graph.
func NewDCG() *DCG { return &DCG{edges: map[Edge]EdgeValues{}} }

// Add adds v to edge e.
func (g *DCG) Add(e Edge, v EdgeValues) {
	e.Site.Return, e.Callee.Return = false, false
	w := g.edges[e]
	w.add(v)
	g.edges[e] = w
}

// Merge adds all edges of o, which stays as it is, as independent estimates.
func (g *DCG) Merge(o *DCG) {
	for e, v := range o.edges {
		g.Add(e, v)
	}
	for r := range g.Dropped {
		g.Dropped[r].add(o.Dropped[r])
	}
}

// Len returns the number of edges.
func (g *DCG) Len() int { return len(g.edges) }

// Get returns the values of e, zero if it is not in the graph.
func (g *DCG) Get(e Edge) EdgeValues { return g.edges[e] }

// All yields the edges ordered by image and offset of the call site, then of
// the callee.
func (g *DCG) All() iter.Seq2[Edge, EdgeValues] {
	return func(yield func(Edge, EdgeValues) bool) {
		edges := make([]Edge, 0, len(g.edges))
		for e := range g.edges {
			edges = append(edges, e)
		}
		slices.SortFunc(edges, compareEdges)
		for _, e := range edges {
			if !yield(e, g.edges[e]) {
				return
			}
		}
	}
}

func compareEdges(a, b Edge) int {
	return cmp.Or(compareAddrs(a.Site, b.Site), compareAddrs(a.Callee, b.Callee))
}

func compareAddrs(a, b image.Addr) int {
	if a.Image != b.Image {
		if a.Image == nil {
			return -1
		}
		if b.Image == nil {
			return 1
		}
		x, y := a.Image.Key, b.Image.Key
		if c := cmp.Or(cmp.Compare(x.Path, y.Path), cmp.Compare(x.Kind, y.Kind),
			cmp.Compare(x.BuildID, y.BuildID), cmp.Compare(x.PID, y.PID)); c != 0 {
			return c
		}
	}
	return cmp.Compare(a.Offset, b.Offset)
}
