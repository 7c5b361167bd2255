package correct

import (
	"cmp"
	"slices"

	"github.com/perfcorrect/perfcorrect/cfg"
	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/image/x86"
)

// flowCode is the code samples were taken in: functions, call sites, and what
// each location of the recording is. Functions are decoded on first mention,
// once.
type flowCode struct {
	store  graph.Resolver
	decode bool // the machine is one package cfg knows
	images map[*image.Image]*cfg.ImageCode

	funcs map[*image.Function]*flowFunc
	list  []*flowFunc
	runs  int // of all functions

	found *flowFinder // functions nothing else knows

	sites  []flowSite
	siteAt map[image.Addr]int32
	locs   map[image.Loc]flowLoc
}

// flowFunc is a function.
type flowFunc struct {
	fn   *image.Function
	id   int32
	g    *cfg.Graph // nil without code
	bias uint64     // link-time address less offset
	// Trusted graphs have classes; of others only the entry block is used as a
	// whole, and every block counts for itself.
	trusted  bool
	firstRun int32  // number of g.Runs[0] among all runs
	certain  []bool // by run: executed once per call

	firstVar int32 // of the system: classes of a trusted graph, else blocks
	entry    int32 // variable: how often the function is entered
	sampled  float64
}

// flowSite is a call instruction.
type flowSite struct {
	addr   image.Addr
	in     *flowFunc // nil if no function is known
	call   int32     // of in.g.Calls, -1 if not decoded
	target *flowFunc // of a direct call, behind a PLT stub; nil if indirect or not known
	stub   *image.Function
}

// flowLoc is what a location is.
type flowLoc struct {
	f    *flowFunc // nil if unknown
	run  int32     // of all runs; -1 if not known
	site int32     // of a return address; -1 otherwise
	stub *image.Function
	mode bool // kernel
}

func newFlowCode(r graph.Resolver, decode bool) *flowCode {
	return &flowCode{
		store: r, decode: decode, images: map[*image.Image]*cfg.ImageCode{},
		found: newFlowFinder(),
		funcs: map[*image.Function]*flowFunc{}, siteAt: map[image.Addr]int32{}, locs: map[image.Loc]flowLoc{},
	}
}

func (c *flowCode) image(im *image.Image) *cfg.ImageCode {
	ic := c.images[im]
	if ic == nil {
		ic = &cfg.ImageCode{Image: im}
		c.images[im] = ic
	}
	return ic
}

// function returns the node of fn. With decode its code is read now.
func (c *flowCode) function(fn *image.Function, decode bool) *flowFunc {
	f := c.funcs[fn]
	if f == nil {
		f = &flowFunc{fn: fn, id: int32(len(c.list)), firstVar: -1}
		c.funcs[fn] = f
		c.list = append(c.list, f)
	}
	if decode && f.g == nil && c.decode && fn.End > fn.Entry {
		c.build(f)
	}
	return f
}

func (c *flowCode) build(f *flowFunc) {
	im := f.fn.Image
	vaddr, ok := im.Vaddr(f.fn.Entry)
	if !ok || im.Kind == image.JIT || im.Kind == image.Unknown {
		return
	}
	g := cfg.Build(c.image(im), vaddr, vaddr+f.fn.End-f.fn.Entry)
	if len(g.Blocks) == 0 {
		return
	}
	f.g, f.bias = g, vaddr-f.fn.Entry
	f.firstRun = int32(c.runs)
	c.runs += len(g.Runs)
	f.trusted = g.Trusted()
	f.certain = make([]bool, len(g.Runs))
	for i, r := range g.Runs {
		f.certain[i] = f.once(r.Block)
	}
	if !f.trusted {
		return
	}
	for _, r := range g.Ranges[1:] { // samples in cold parts are samples of the function
		if off, ok := im.FileOffset(r.Start); ok {
			if cold := im.FunctionAt(off); cold != nil && c.funcs[cold] == nil {
				c.funcs[cold] = f
			}
		}
	}
}

// once reports whether every call of the function runs block b exactly once.
func (f *flowFunc) once(b int) bool {
	if f.trusted {
		return f.g.Blocks[b].Class == f.g.EntryClass
	}
	return b == f.g.Start
}

// runAt returns the run an offset lies in, -1 if none.
func (f *flowFunc) runAt(offset uint64) int32 {
	if f.g == nil {
		return -1
	}
	a := offset + f.bias
	i, exact := slices.BinarySearchFunc(f.g.Runs, a, func(r cfg.Run, a uint64) int { return cmp.Compare(r.Start, a) })
	if !exact {
		i--
	}
	if i < 0 || a >= f.g.Runs[i].End {
		return -1
	}
	return int32(i)
}

// loc says what a location is; its function is decoded.
func (c *flowCode) loc(l image.Loc) flowLoc {
	if x, ok := c.locs[l]; ok {
		return x
	}
	a := c.store.Addr(l)
	x := flowLoc{run: -1, site: -1, mode: a.Image != nil && (a.Image.Kind == image.Kernel || a.Image.Kind == image.Module || a.Image.Kind == image.BPF)}
	fn := c.covering(l)
	if fn != nil && fn.Stub {
		x.stub = fn
		fn = c.store.ResolvePLT(fn)
	}
	if fn != nil && !fn.Stub {
		x.f = c.function(fn, true)
	}
	if a.Return {
		x.site = c.site(c.store.CallSite(l), x.f)
	} else if x.f != nil && x.stub == nil {
		x.run = x.f.runAt(a.Offset)
	}
	c.locs[l] = x
	return x
}

// back is how far before a location its function is looked up.
func back(a image.Addr) uint64 {
	if a.Return {
		return 1
	}
	return 0
}

// prepare decodes the functions of all locations and what these call, so that
// nothing known of code changes once samples are counted.
func (c *flowCode) prepare(locs []image.Loc) {
	if !c.decode {
		return
	}
	for _, l := range locs {
		a := c.store.CallSite(l)
		if !c.store.Addr(l).Return || a.Image == nil || a.Image.Kind != image.File {
			continue
		}
		in, err := x86.Decode(a.Image.Text(a.Offset, 15), a.Offset)
		if err == nil && in.Control == x86.Call {
			c.found.called(image.Addr{Image: a.Image, Offset: in.Target})
		}
	}
	c.found.follow()
	for _, l := range locs {
		if fn := c.covering(l); fn != nil && fn.Stub {
			fn = c.store.ResolvePLT(fn)
			if fn != nil && !fn.Stub {
				c.function(fn, true)
			}
		} else if fn != nil {
			c.function(fn, true)
		}
	}
	c.expand()
	for range 3 {
		if !c.endless() {
			break
		}
	}
}

// covering returns the function at a location.
func (c *flowCode) covering(l image.Loc) *image.Function {
	fn := c.store.Function(l)
	if fn == nil && c.decode {
		a := c.store.Addr(l)
		fn = c.found.function(a.Image, a.Offset-min(a.Offset, back(a)))
	}
	return fn
}

// expand decodes what the functions known so far call: a short callee may have
// no samples at all.
func (c *flowCode) expand() {
	for i, n := 0, len(c.list); i < n; i++ {
		f := c.list[i]
		if f.g == nil {
			continue
		}
		for _, call := range f.g.Calls {
			if t, _ := c.target(f, call.Target); t != nil {
				c.function(t.fn, true)
			}
		}
	}
}

// endless finds functions that never return, which only their code shows, and
// decodes anew what calls them. It reports whether there were any.
func (c *flowCode) endless() bool {
	found := map[*image.Image]map[uint64]bool{}
	for _, f := range c.list {
		if f.g == nil || f.g.Returns || !f.trusted {
			continue
		}
		ic := c.image(f.fn.Image)
		if ic.Ends == nil {
			ic.Ends = map[uint64]bool{}
		}
		if !ic.Ends[f.g.Entry] {
			ic.Ends[f.g.Entry] = true
			if found[f.fn.Image] == nil {
				found[f.fn.Image] = map[uint64]bool{}
			}
			found[f.fn.Image][f.g.Entry] = true
		}
	}
	for _, f := range c.list {
		if f.g != nil && slices.ContainsFunc(f.g.Calls, func(k cfg.Call) bool { return found[f.fn.Image][k.Target] && !k.NoReturn }) {
			c.build(f)
		}
	}
	return len(found) > 0
}

// site returns the number of the call at an address of function in.
func (c *flowCode) site(a image.Addr, in *flowFunc) int32 {
	a.Return = false
	if i, ok := c.siteAt[a]; ok {
		return i
	}
	s := flowSite{addr: a, in: in, call: -1}
	if in != nil && in.g != nil {
		k, ok := slices.BinarySearchFunc(in.g.Calls, a.Offset+in.bias, func(x cfg.Call, at uint64) int { return cmp.Compare(x.Site, at) })
		if ok {
			s.call = int32(k)
			s.target, s.stub = c.target(in, in.g.Calls[k].Target)
		}
	}
	i := int32(len(c.sites))
	c.sites = append(c.sites, s)
	c.siteAt[a] = i
	return i
}

// target finds the function a direct call or jump goes to.
func (c *flowCode) target(in *flowFunc, vaddr uint64) (f *flowFunc, stub *image.Function) {
	if vaddr == 0 {
		return nil, nil
	}
	im := in.fn.Image
	off, ok := im.FileOffset(vaddr)
	if !ok {
		return nil, nil
	}
	fn := im.FunctionAt(off)
	if fn == nil {
		fn = c.found.function(im, off)
	}
	if fn != nil && fn.Stub {
		stub = fn
		fn = c.store.ResolvePLT(fn)
	}
	if fn == nil || fn.Stub {
		return nil, stub
	}
	return c.function(fn, false), stub
}

// class returns the variable of the block a site is in, -1 if unknown.
func (c *flowCode) siteVar(s *flowSite) int32 {
	if s.call < 0 {
		return -1
	}
	return s.in.blockVar(s.in.g.Calls[s.call].Block)
}

func (f *flowFunc) blockVar(b int) int32 {
	if f.trusted {
		return f.firstVar + int32(f.g.Blocks[b].Class)
	}
	return f.firstVar + int32(b)
}

// address is the inverse of bias: where link-time address a is in the image.
func (f *flowFunc) address(a uint64) (image.Addr, bool) {
	off, ok := f.fn.Image.FileOffset(a)
	return image.Addr{Image: f.fn.Image, Offset: off}, ok
}

// dies reports whether a call ends the program: it is not worth a variable.
func (s *flowSite) dies() bool {
	return s.call >= 0 && s.in.g.Blocks[s.in.g.Calls[s.call].Block].Dies
}
