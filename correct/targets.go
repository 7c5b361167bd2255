package correct

import (
	"strings"

	"github.com/perfcorrect/perfcorrect/graph"
	"github.com/perfcorrect/perfcorrect/image"
)

// targets says which function a call to a PLT stub reached, where the linker's
// rule does not: for an indirect function, whose resolver (memcpy) chose an
// implementation when the program was loaded (__memmove_avx_unaligned_erms),
// and for a stub whose target is not known. What the recording shows decides:
//
//  1. a jump from the stub (stacks of mode any);
//  2. stacks whose leaf was called from a site whose calls go to the stub;
//  3. where stacks have no callers, ips right after a call to the stub was the
//     newest record.
//
// The function with most votes is taken, for all call sites of the stub and
// for all stubs of the resolver. Of an implementation that is only an entry
// into another one's body (mempcpy into memmove) samples show the body; the
// entry lies beside it and has the right name.
type targets struct {
	res   graph.Resolver
	ran   map[*image.Function]*image.Function // by what key returns
	votes map[*image.Function]map[*image.Function]int64
}

func newTargets(res graph.Resolver) *targets {
	return &targets{
		res: res, ran: map[*image.Function]*image.Function{},
		votes: map[*image.Function]map[*image.Function]int64{},
	}
}

// stackTargets takes the votes of branch records and of the stacks they came
// with.
func stackTargets(res graph.Resolver, s *graph.Stacks, r *recordReader, sums *edgeSums) *targets {
	t := newTargets(res)
	t.stacks(s, t.records(r, sums))
	t.decide()
	return t
}

// leafTargets adds to stackTargets the votes of ips behind newest records.
func leafTargets(e *lbr, res graph.Resolver) *targets {
	t := newTargets(res)
	t.stacks(e.stacks, t.records(&e.rec, &e.sums))
	for k, n := range e.leafs {
		_, to := e.rec.types.at(k.id)
		t.vote(t.key(res.Function(image.Loc(to))), res.Function(image.Loc(k.leaf)), n)
	}
	t.decide()
	return t
}

func (t *targets) decide() {
	for f, m := range t.votes {
		switch ran := winner(m); {
		case strings.HasPrefix(ran.System, implementation(f)):
			t.ran[f] = ran
		case f.Stub || f.Indirect():
			t.ran[f] = beside(f, ran)
		}
	}
}

// key is what votes about a stub are counted for: the function behind it by the
// linker's rule, or the stub if there is none; nil if f is no stub.
func (t *targets) key(f *image.Function) *image.Function {
	if f == nil || !f.Stub {
		return nil
	}
	if target := t.res.ResolvePLT(f); target != nil && !target.Stub {
		return target
	}
	return f
}

// behind returns the function that calls to a stub reach, nil if it is not
// known.
func (t *targets) behind(stub *image.Function) *image.Function {
	if ran := t.ran[t.key(stub)]; ran != nil {
		return ran
	}
	if f := t.res.ResolvePLT(stub); f != nil && !f.Stub {
		return f
	}
	return nil
}

// records takes the votes of jumps from stubs, and returns the sites of calls
// that go to stubs.
func (t *targets) records(r *recordReader, sums *edgeSums) map[image.Addr]*image.Function {
	sites := map[image.Addr]*image.Function{}
	for i := range r.types.len() {
		from, to := r.types.at(uint32(i))
		switch r.kinds[i] {
		case otherBranch:
			if f := t.key(t.res.Function(image.Loc(from))); f != nil {
				const sure = 1 << 16 // stacks
				t.vote(f, t.res.Function(image.Loc(to)), sure*sums.records(i))
			}
		case callRecord:
			if f := t.key(t.res.Function(image.Loc(to))); f != nil {
				sites[t.res.Addr(image.Loc(from))] = f
			}
		}
	}
	return sites
}

func (t *targets) stacks(s *graph.Stacks, sites map[image.Addr]*image.Function) {
	for st, v := range s.All() {
		if len(st.Frames) < 2 || !t.res.Addr(st.Frames[1]).Return {
			continue
		}
		at := t.res.CallSite(st.Frames[1])
		at.Return = false
		if f := sites[at]; f != nil {
			t.vote(f, t.res.Function(st.Frames[0]), v.Samples)
		}
	}
}

// vote: an implementation lies in the image of its resolver. The resolver
// itself is no vote, nor is the dynamic linker, which runs below the first
// call.
func (t *targets) vote(key, ran *image.Function, n int64) {
	if key == nil || ran == nil || ran.Stub || ran.Indirect() || !key.Stub && ran.Image != key.Image {
		return
	}
	if t.votes[key] == nil {
		t.votes[key] = map[*image.Function]int64{}
	}
	t.votes[key][ran] += n
}

func winner(m map[*image.Function]int64) (best *image.Function) {
	for f, n := range m {
		if best == nil || n > m[best] || n == m[best] && f.Entry < best.Entry {
			best = f
		}
	}
	return best
}

// implementation is what the names of a function's implementations begin with
// in glibc. It also shows that the linker bound an indirect function of a newer
// version than the one of the same name that was found.
func implementation(f *image.Function) string {
	return "__" + strings.Trim(strings.TrimSuffix(f.System, "@plt"), "_") + "_"
}

// beside returns the function close before ran that is the resolver's and has
// the same variant (avx_unaligned_erms), or ran.
func beside(key, ran *image.Function) *image.Function {
	name := implementation(key)
	_, variant, ok := strings.Cut(strings.TrimLeft(ran.System, "_"), "_")
	if !ok {
		return ran
	}
	for back := uint64(16); back <= 160 && back < ran.Entry; back += 16 {
		if f := ran.Image.FunctionAt(ran.Entry - back); f != nil && f.System == name+variant {
			return f
		}
	}
	return ran
}

// edge returns the call edge of a type of record.
func (t *targets) edge(r *recordReader, id uint32, res graph.Resolver) (graph.Edge, graph.Reason, bool) {
	from, to := r.types.at(id)
	if r.kinds[id] == returnRecord {
		return t.returned(image.Loc(from), image.Loc(to))
	}
	site, callee := res.Addr(image.Loc(from)), res.Addr(image.Loc(to))
	if !known(site.Image) {
		return graph.Edge{}, graph.UnknownCaller, false
	}
	if !known(callee.Image) {
		return graph.Edge{}, graph.UnknownCallee, false
	}
	f := res.Function(image.Loc(to))
	if f != nil && f.Stub {
		if f = t.behind(f); f == nil {
			return graph.Edge{}, graph.UnknownTarget, false
		}
		callee = image.Addr{Image: f.Image, Offset: f.Entry}
	}
	return graph.Edge{Site: site, Callee: callee}, 0, true
}

// returned is the edge of a return: to behind the call, from anywhere in the
// callee.
func (t *targets) returned(from, to image.Loc) (graph.Edge, graph.Reason, bool) {
	site := t.res.Addr(to)
	if !known(site.Image) {
		return graph.Edge{}, graph.UnknownCaller, false
	}
	f := t.res.Function(from)
	if f == nil || !known(f.Image) {
		return graph.Edge{}, graph.UnknownCallee, false
	}
	if in, ok := t.res.(interface{ Loc(image.Addr) image.Loc }); ok {
		site.Return = true
		site = t.res.CallSite(in.Loc(site))
	}
	site.Return = false
	return graph.Edge{Site: site, Callee: image.Addr{Image: f.Image, Offset: f.Entry}}, 0, true
}

func known(im *image.Image) bool { return im != nil && im.Kind != image.Unknown }
