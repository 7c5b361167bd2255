package formats

import (
	"bufio"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
)

// writeFolded writes one line for each distinct stack of names,
//
//	comm;outermost;...;leaf value
//
// as stackcollapse-perf.pl --all (github.com/brendangregg/FlameGraph) makes
// them of perf script's output, sorted as it sorts. The value is the estimate
// of calls into the leaf, for method none the number of samples.
func writeFolded(w io.Writer, p *Profile) error {
	t := newNameTree(p.Store)
	for st, v := range p.Stacks.All() {
		value := v.Calls
		if p.Method == "none" {
			value = float64(v.Samples)
		}
		t.add(st, value)
	}
	return t.write(w)
}

// nameTree is the tree of stacks as names: a node is a frame in the context of
// its parent, and what is not a root has a value if a line ends there. A
// stack's node is found by one look-up a frame, fewer if the stack before it
// began the same.
type nameTree struct {
	frames frameNames
	nodes  []nameNode // 0 is the root of all
	slots  []uint32   // open addressing by (parent, name): node number, 0 is free

	path  []uint32 // names of the latest stack, outermost first
	along []uint32 // and its nodes
	next  []uint32
}

type nameNode struct {
	parent, name uint32
	value        float64 // NaN if no stack ends here
}

func newNameTree(s *image.Store) *nameTree {
	return &nameTree{
		frames: newFrameNames(s),
		nodes:  []nameNode{{value: math.NaN()}},
		slots:  make([]uint32, 1<<12),
	}
}

func (t *nameTree) add(st graph.Stack, value float64) {
	comm, java := t.frames.comm(st.Label)
	names := append(t.next[:0], comm)
	for _, l := range slices.Backward(st.Frames) {
		names = t.frames.append(names, l, java)
	}
	t.addNames(names, value)
}

// addNames adds value to the line of these names, which becomes t's.
func (t *nameTree) addNames(names []uint32, value float64) {
	same := 0
	for same < min(len(names), len(t.path)) && names[same] == t.path[same] {
		same++
	}
	t.along = t.along[:same]
	at := uint32(0)
	if same > 0 {
		at = t.along[same-1]
	}
	for _, n := range names[same:] {
		at = t.child(at, n)
		t.along = append(t.along, at)
	}
	t.path, t.next = names, t.path
	if v := &t.nodes[at].value; math.IsNaN(*v) {
		*v = value
	} else {
		*v += value
	}
}

func hashChild(parent, name uint32) uint64 {
	h := (uint64(parent)<<32 | uint64(name)) * 0x9E3779B97F4A7C15
	return h ^ h>>32
}

func (t *nameTree) child(parent, name uint32) uint32 {
	mask := uint64(len(t.slots) - 1)
	for i := hashChild(parent, name) & mask; ; i = (i + 1) & mask {
		n := t.slots[i]
		if n == 0 {
			n = uint32(len(t.nodes))
			t.nodes = append(t.nodes, nameNode{parent, name, math.NaN()})
			t.slots[i] = n
			if 2*len(t.nodes) > len(t.slots) {
				t.rehash()
			}
			return n
		}
		if x := &t.nodes[n]; x.parent == parent && x.name == name {
			return n
		}
	}
}

func (t *nameTree) rehash() {
	t.slots = make([]uint32, 2*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for n := 1; n < len(t.nodes); n++ {
		i := hashChild(t.nodes[n].parent, t.nodes[n].name) & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = uint32(n)
	}
}

// write writes the lines in the byte order of their stacks.
func (t *nameTree) write(w io.Writer) error {
	t.slots = nil // has done its work
	f := folder{t: t, w: bufio.NewWriterSize(w, 1<<16)}
	// children lists the nodes by parent: those of node n are
	// children[start[n]:start[n+1]].
	f.start = make([]uint32, len(t.nodes)+1)
	for _, n := range t.nodes[1:] {
		f.start[n.parent+1]++
	}
	for i := 1; i < len(f.start); i++ {
		f.start[i] += f.start[i-1]
	}
	f.children = make([]uint32, len(t.nodes)-1)
	fill := slices.Clone(f.start)
	for i, n := range t.nodes[1:] {
		f.children[fill[n.parent]] = uint32(i + 1)
		fill[n.parent]++
	}
	if err := f.subtree(0); err != nil {
		return err
	}
	return f.w.Flush()
}

type folder struct {
	t        *nameTree
	w        *bufio.Writer
	start    []uint32
	children []uint32
	path     []byte
	items    []item // of all nodes on the path
	number   []byte
}

// item is what sorts as a whole among the children of a node: the line that
// ends at a child, or all lines that go on below it.
type item struct {
	node  uint32
	below bool
}

func (f *folder) subtree(node uint32) error {
	first := len(f.items)
	for _, c := range f.children[f.start[node]:f.start[node+1]] {
		if !math.IsNaN(f.t.nodes[c].value) {
			f.items = append(f.items, item{c, false})
		}
		if f.start[c] < f.start[c+1] {
			f.items = append(f.items, item{c, true})
		}
	}
	slices.SortFunc(f.items[first:], f.compare)
	length := len(f.path)
	for i := first; i < len(f.items); i++ {
		it := f.items[i]
		f.path = append(f.path[:length], f.name(it.node)...)
		var err error
		if it.below {
			f.path = append(f.path, ';')
			err = f.subtree(it.node)
		} else {
			err = f.line(f.t.nodes[it.node].value)
		}
		if err != nil {
			return err
		}
	}
	f.items = f.items[:first]
	f.path = f.path[:length]
	return nil
}

func (f *folder) name(node uint32) string { return f.t.frames.names[f.t.nodes[node].name] }

func (f *folder) line(value float64) error {
	f.w.Write(f.path)
	f.number = appendValue(append(f.number[:0], ' '), value)
	f.number = append(f.number, '\n')
	_, err := f.w.Write(f.number)
	return err
}

// compare orders by what follows in the lines: of two names one of which
// begins with the other, the shorter is followed by a semicolon or by nothing.
func (f *folder) compare(a, b item) int {
	x, y := f.name(a.node), f.name(b.node)
	n := min(len(x), len(y))
	if c := strings.Compare(x[:n], y[:n]); c != 0 {
		return c
	}
	return int(after(x, n, a.below)) - int(after(y, n, b.below))
}

// after is the character of a line at position i, which is in or right behind
// the name; 0 behind the end.
func after(name string, i int, below bool) byte {
	switch {
	case i < len(name):
		return name[i]
	case below:
		return ';'
	}
	return 0
}

// appendValue writes a value without exponent, which flamegraph.pl would not
// read; one that is not whole with at most 8 digits that mean something.
func appendValue(b []byte, v float64) []byte {
	if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'f', -1, 32)
}
