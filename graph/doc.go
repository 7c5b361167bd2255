// Package graph holds what is known about the calls of a program:
//
//  1. Stacks: distinct call stacks with their weights, what an estimator
//     accumulates. There may be millions, so they live in flat memory.
//  2. DCG: the dynamic call graph, one weighted edge for each call site and
//     callee. LeafEdges derives it from Stacks: the call that the two
//     innermost frames of a stack stand for.
//
// Both speak of code as package image does: a stack's frames are Locs, so that
// Stacks can be merged only if their Locs are of the same image.Store; an
// edge's ends are Addrs.
package graph

// Values are the weights of a stack.
type Values struct {
	Samples int64   // samples taken in it
	Event   float64 // what the sampling event counted, in its unit: sum of periods
	Calls   float64 // estimated calls into its leaf
}

func (v *Values) add(w Values) {
	v.Samples += w.Samples
	v.Event += w.Event
	v.Calls += w.Calls
}

// Label tells apart equal stacks of different threads. PID and TID are 0 where
// the profile is not to be split by them.
type Label struct {
	Comm     string
	PID, TID int32
}
