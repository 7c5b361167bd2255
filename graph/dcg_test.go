package graph

import (
	"math"
	"reflect"
	"testing"

	"github.com/perfcorrect/perfcorrect/image"
)

// world is a Resolver over made-up code: a call instruction is 5 bytes long.
type world struct {
	addrs     []image.Addr
	functions []*image.Function
	targets   map[*image.Function]*image.Function
}

func (w *world) loc(a image.Addr) image.Loc {
	w.addrs = append(w.addrs, a)
	return image.Loc(len(w.addrs) - 1)
}
func (w *world) Addr(l image.Loc) image.Addr { return w.addrs[l] }
func (w *world) CallSite(l image.Loc) image.Addr {
	a := w.addrs[l]
	a.Offset -= 5
	return a
}
func (w *world) Function(l image.Loc) *image.Function {
	a := w.addrs[l]
	if a.Return {
		a.Offset--
	}
	for _, f := range w.functions {
		if f.Image == a.Image && f.Entry <= a.Offset && a.Offset < f.End {
			return f
		}
	}
	return nil
}
func (w *world) ResolvePLT(f *image.Function) *image.Function {
	if f.Stub {
		return w.targets[f]
	}
	return f
}

func TestLeafEdges(t *testing.T) {
	prog := &image.Image{Key: image.Key{Path: "/bin/prog"}}
	libc := &image.Image{Key: image.Key{Path: "/lib/libc.so"}}
	kern := &image.Image{Key: image.Key{Kind: image.Kernel, Path: "[kernel.kallsyms]"}}
	nowhere := &image.Image{Key: image.Key{Kind: image.Unknown}}
	fn := func(im *image.Image, entry, end uint64, stub bool) *image.Function {
		return &image.Function{Image: im, Entry: entry, End: end, Stub: stub}
	}
	main, leaf := fn(prog, 0x100, 0x200, false), fn(prog, 0x200, 0x300, false)
	puts, putsPLT, lostPLT := fn(libc, 0x800, 0x900, false), fn(prog, 0x20, 0x30, true), fn(prog, 0x30, 0x40, true)
	entry, read := fn(kern, 0xf00, 0xf80, false), fn(kern, 0xf80, 0xff0, false)
	w := &world{
		functions: []*image.Function{main, leaf, puts, putsPLT, lostPLT, entry, read},
		targets:   map[*image.Function]*image.Function{putsPLT: puts},
	}
	ip := func(im *image.Image, o uint64) image.Loc { return w.loc(image.Addr{Image: im, Offset: o}) }
	ret := func(im *image.Image, o uint64) image.Loc {
		return w.loc(image.Addr{Image: im, Offset: o, Return: true})
	}

	mainRet, mainIP := ret(prog, 0x150), ip(prog, 0x150)
	s := NewStacks()
	add := func(calls float64, frames ...image.Loc) { s.Add(Label{}, frames, Values{Samples: 1, Calls: calls}) }
	add(2, ip(prog, 0x210), mainRet)                                   // main -> leaf
	add(3, ip(prog, 0x250), mainRet, ret(prog, 0x120))                 // the same, elsewhere in leaf
	add(5, ip(prog, 0x2ff), ret(prog, 0x200))                          // a call ending main: belongs to main
	add(7, ip(libc, 0x810), mainRet)                                   // inside puts, called through the stub
	add(11, ip(prog, 0x24), mainRet)                                   // in the stub itself
	add(13, ip(kern, 0xf90), ret(kern, 0xf20), mainIP, ret(prog, 0x1)) // read below entry
	add(17, ip(kern, 0xf10), mainIP, ret(prog, 0x1))                   // system call entry
	add(19, ip(prog, 0x110))                                           // alone
	add(23)                                                            // empty
	add(29, ip(prog, 0x5000), mainRet)                                 // no function there
	add(31, ip(prog, 0x34), mainRet)                                   // stub of nobody knows what
	add(37, ip(prog, 0x220), ret(nowhere, 0x7000))                     // caller unmapped
	add(41, ip(prog, 0x220), ret(kern, 0xf20))                         // user code below kernel code: no such call

	g := LeafEdges(s, w)
	at := func(im *image.Image, o uint64) image.Addr { return image.Addr{Image: im, Offset: o} }
	want := map[Edge]EdgeValues{
		{at(prog, 0x14b), at(prog, 0x200)}: {2, 5, 5 / math.Sqrt(2)},
		{at(prog, 0x1fb), at(prog, 0x200)}: {1, 5, 5},
		{at(prog, 0x14b), at(libc, 0x800)}: {2, 18, 18 / math.Sqrt(2)},
		{at(kern, 0xf1b), at(kern, 0xf80)}: {1, 13, 13},
	}
	got := map[Edge]EdgeValues{}
	for e, v := range g.All() {
		got[e] = v
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("edges\n%v\nwant\n%v", got, want)
	}
	wantDropped := [NumReasons]Values{
		NoFrames:      {Samples: 1, Calls: 23},
		NoCaller:      {Samples: 1, Calls: 19},
		ModeChange:    {Samples: 2, Calls: 17 + 41},
		UnknownCaller: {Samples: 1, Calls: 37},
		UnknownCallee: {Samples: 1, Calls: 29},
		UnknownTarget: {Samples: 1, Calls: 31},
	}
	if g.Dropped != wantDropped {
		t.Errorf("dropped %v\nwant %v", g.Dropped, wantDropped)
	}
	// Nothing is lost on the way.
	var sum Values
	for _, v := range g.Dropped {
		sum.add(v)
	}
	for _, v := range got {
		sum.add(Values{Samples: v.Samples, Calls: v.Calls})
	}
	if sum != s.Total() {
		t.Errorf("edges and dropped together %v, stacks %v", sum, s.Total())
	}
}

func TestDCGOrderAndMerge(t *testing.T) {
	a := &image.Image{Key: image.Key{Path: "/a"}}
	b := &image.Image{Key: image.Key{Path: "/b"}}
	e := func(im *image.Image, site uint64, to *image.Image, callee uint64) Edge {
		return Edge{image.Addr{Image: im, Offset: site}, image.Addr{Image: to, Offset: callee}}
	}
	edges := []Edge{e(a, 1, a, 9), e(a, 1, b, 2), e(a, 3, a, 1), e(b, 0, a, 0), e(b, 0, a, 7)}
	g, h, whole := NewDCG(), NewDCG(), NewDCG()
	for i := len(edges) - 1; i >= 0; i-- {
		v := EdgeValues{Samples: int64(i), Calls: float64(i), Stderr: 3}
		g.Add(edges[i], v)
		whole.Add(edges[i], v)
	}
	h.Add(edges[1], EdgeValues{Samples: 10, Calls: 100, Stderr: 4})
	h.Dropped[NoCaller] = Values{Samples: 4}
	g.Merge(h)
	var order []Edge
	for e := range g.All() {
		order = append(order, e)
	}
	if !reflect.DeepEqual(order, edges) {
		t.Errorf("order %v, want %v", order, edges)
	}
	if got := g.Get(edges[1]); got != (EdgeValues{11, 101, 5}) {
		t.Errorf("merged edge %v, want 11 samples, 101 +- 5 calls", got)
	}
	if g.Get(edges[2]) != whole.Get(edges[2]) || g.Dropped[NoCaller].Samples != 4 {
		t.Errorf("Merge changed an edge it had nothing for, or lost Dropped")
	}
	// The kind of address does not make another edge.
	x := edges[0]
	x.Site.Return = true
	g.Add(x, EdgeValues{Samples: 1})
	if g.Len() != len(edges) {
		t.Errorf("%d edges, want %d", g.Len(), len(edges))
	}
}
