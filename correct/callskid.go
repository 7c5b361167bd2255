package correct

import (
	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
)

// maxSkid bounds how far from its call a sample is looked for.
const maxSkid = 8

// usualSkid returns how many instructions after their call most samples are
// taken, the call included, so that 1 is the entry of the callee; 0 if no
// number holds for most. Only leaf edges count, which the path from the call
// proves.
func (f *callFinder) usualSkid() int {
	if f.e.opt.Store == nil {
		return 0
	}
	var votes [maxSkid + 1]int64
	var all int64
	for st, v := range f.e.stacks.All() {
		if len(st.Frames) < 2 {
			continue
		}
		all += v.Samples
		ip := f.res.Addr(st.Frames[0])
		for n := 1; n <= maxSkid; n++ {
			if _, ok := f.from(st.Frames, 1, ip, n); ok {
				votes[n] += v.Samples
				break
			}
		}
	}
	best := 0
	for n := range votes {
		if votes[n] > votes[best] {
			best = n
		}
	}
	if 2*votes[best] < all {
		return 0
	}
	return best
}

// followed returns the call from which a path of the usual length leads to the
// ip: the leaf edge, one further out whose callee has called on, or one that
// has returned.
func (f *callFinder) followed(frames []image.Loc, ip image.Addr) (graph.Edge, bool) {
	if f.skid == 0 || !known(ip.Image) {
		return graph.Edge{}, false
	}
	for depth := 1; depth <= 3 && depth < len(frames); depth++ {
		if e, ok := f.from(frames, depth, ip, f.skid); ok {
			return e, true
		}
	}
	for _, c := range f.code.before(ip) {
		to, ok := f.code.target(c)
		if !ok {
			continue
		}
		in := f.code.at(c)
		back := image.Addr{Image: c.Image, Offset: in.End()}
		if f.code.reach(to, back, f.skid-1, ip, 0, f.behind) {
			return f.direct(c)
		}
	}
	return graph.Edge{}, false
}

// returned reports whether an indirect call, of nobody knows what, ended less
// than the usual skid before the ip.
func (f *callFinder) returned(ip image.Addr) bool {
	if f.skid == 0 || !known(ip.Image) {
		return false
	}
	for _, c := range f.code.before(ip) {
		if _, direct := f.code.target(c); !direct && f.near(c, ip, f.skid-1) {
			return true
		}
	}
	return false
}

// from returns the edge of the call that made the depth'th caller's callee, if
// it can have led to the ip in n instructions.
func (f *callFinder) from(frames []image.Loc, depth int, ip image.Addr, n int) (graph.Edge, bool) {
	site, ok := f.site(frames[depth])
	if !ok {
		return graph.Edge{}, false
	}
	e, ok := f.direct(site)
	entry, direct := f.code.target(site)
	if !ok || !direct { // an indirect call: of the function the next frame is in
		fn := f.res.Function(frames[depth-1])
		switch {
		case fn == nil && depth == 1: // functions without symbols are aligned all the same
			entry = image.Addr{Image: ip.Image, Offset: ip.Offset &^ 15}
		case fn == nil || fn.Stub:
			return graph.Edge{}, false
		default:
			entry = image.Addr{Image: fn.Image, Offset: fn.Entry}
		}
		e = graph.Edge{Site: site, Callee: entry}
	}
	return e, f.code.reach(entry, image.Addr{}, n-1, ip, depth, f.behind)
}

// behind is where a stub jumps.
func (f *callFinder) behind(a image.Addr) (image.Addr, bool) {
	fn := a.Image.FunctionAt(a.Offset)
	if fn == nil || !fn.Stub {
		return image.Addr{}, false
	}
	if fn = f.targets.behind(fn); fn == nil {
		return image.Addr{}, false
	}
	return image.Addr{Image: fn.Image, Offset: fn.Entry}, true
}
