package session

import (
	"strings"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/image/x86"
)

// codeIndex knows what functions call, from their instructions.
type codeIndex struct {
	store   *image.Store
	bodies  map[*image.Function]*body
	decoded int // bytes
}

// body is what control does in a function: its calls, in order, and the
// functions it ends in by a jump.
type body struct {
	calls []call
	jumps []*image.Function
}

// call is a call instruction of a function.
type call struct {
	next   uint64          // offset of the instruction behind, where the call returns to
	target *image.Function // behind PLT stubs; nil for an indirect call, or if it is no function
}

// Bounds on the code looked at: one function, all, and functions on the way
// from a caller to the leaf.
const (
	maxBody    = 1 << 20
	maxDecoded = 64 << 20
	maxVisits  = 64
)

// callAt decodes the call at an address. It returns what that calls, nil for
// an indirect call; ok is false if there is no call.
func (x *codeIndex) callAt(at image.Addr) (target *image.Function, ok bool) {
	if at.Image.Kind != image.File || !at.Image.X86() {
		return nil, false
	}
	in, err := x86.Decode(at.Image.Text(at.Offset, 15), at.Offset)
	if err != nil || !in.IsCall() {
		return nil, false
	}
	return x.call(at.Image, &in).target, true
}

func (x *codeIndex) call(im *image.Image, in *x86.Inst) call {
	c := call{next: in.End()}
	if in.Control == x86.Call {
		c.target = x.functionAt(im, in.Target)
	}
	return c
}

// functionAt returns the function that a direct call or jump to an offset
// reaches, which counts in the file as instructions do in memory: within one
// segment.
func (x *codeIndex) functionAt(im *image.Image, offset uint64) *image.Function {
	f := im.FunctionAt(offset)
	if f == nil || f.Entry != offset {
		return nil
	}
	if f.Stub {
		return x.store.ResolvePLT(f)
	}
	return f
}

// body decodes a function, once.
func (x *codeIndex) body(f *image.Function) *body {
	if b := x.bodies[f]; b != nil {
		return b
	}
	b := &body{}
	x.bodies[f] = b
	n := int(min(f.End-f.Entry, maxBody))
	if f.End <= f.Entry || x.decoded+n > maxDecoded || f.Image.Kind != image.File || !f.Image.X86() {
		return b
	}
	x.decoded += n
	code := f.Image.Text(f.Entry, n)
	for at := 0; at < len(code); {
		in, err := x86.Decode(code[at:], f.Entry+uint64(at))
		if err != nil {
			at++
			continue
		}
		switch {
		case in.IsCall():
			b.calls = append(b.calls, x.call(f.Image, &in))
		case (in.Control == x86.Jump || in.Control == x86.CondJump) && (in.Target < f.Entry || in.Target >= f.End):
			if g := x.functionAt(f.Image, in.Target); g != nil {
				b.jumps = append(b.jumps, g)
			}
		}
		at += in.Len
	}
	return b
}

// paths returns the return addresses, innermost first, that lie on the stack
// between leaf and what caller was called by: directPaths, or if there are
// none the indirect calls of caller.
func (x *codeIndex) paths(caller, leaf *image.Function) [][]image.Loc {
	all := x.directPaths(caller, leaf)
	if len(all) > 0 {
		return all
	}
	for _, c := range x.body(caller).calls {
		if c.target == nil {
			all = append(all, []image.Loc{x.ret(caller, c)})
		}
	}
	return all
}

// directPaths are the calls of caller that reach leaf, by a jump if need be.
// If there are none, those of the functions it jumps to; then those of
// functions it calls.
func (x *codeIndex) directPaths(caller, leaf *image.Function) [][]image.Loc {
	b := x.body(caller)
	all := x.callsOf(nil, caller, leaf)
	if len(all) > 0 {
		return all
	}
	for _, g := range b.jumps { // caller is gone, g stands in its place
		all = x.callsOf(all, g, leaf)
	}
	if len(all) > 0 {
		return all
	}
	for _, c := range b.calls[:min(len(b.calls), maxVisits)] {
		if c.target != nil && c.target != caller {
			all = x.callsOf(all, c.target, leaf, x.ret(caller, c))
		}
	}
	return all
}

// callsOf appends the return addresses of the calls of f that reach leaf, each
// followed by those of outer calls.
func (x *codeIndex) callsOf(all [][]image.Loc, f, leaf *image.Function, outer ...image.Loc) [][]image.Loc {
	for _, c := range x.body(f).calls {
		if c.target != nil && x.reaches(c.target, leaf) {
			all = append(all, append([]image.Loc{x.ret(f, c)}, outer...))
		}
	}
	return all
}

// ret is the return address of a call in f.
func (x *codeIndex) ret(f *image.Function, c call) image.Loc {
	return x.store.Loc(image.Addr{Image: f.Image, Offset: c.next, Return: true})
}

// reaches reports whether a call of f is one of leaf: it is f, an
// implementation of it, or f ends by jumping there.
func (x *codeIndex) reaches(f, leaf *image.Function) bool {
	return same(f, leaf) || implements(leaf, f) || x.jumpsTo(f, leaf)
}

// jumpsTo reports whether f ends by a jump to leaf, or to a function that does.
func (x *codeIndex) jumpsTo(f, leaf *image.Function) bool {
	for _, g := range x.body(f).jumps {
		if same(g, leaf) || implements(leaf, g) {
			return true
		}
		for _, h := range x.body(g).jumps {
			if same(h, leaf) {
				return true
			}
		}
	}
	return false
}

// same reports whether two functions are one: compilers put parts of a
// function elsewhere (.cold).
func same(f, g *image.Function) bool {
	if f == g {
		return true
	}
	if f.Image != g.Image {
		return false
	}
	a, coldA := strings.CutSuffix(f.System, ".cold")
	b, coldB := strings.CutSuffix(g.System, ".cold")
	return (coldA || coldB) && a == b && a != ""
}

// implements reports whether leaf can be what the dynamic linker chose for the
// indirect function f: memcpy is one of a dozen functions without public name
// (glibc, sysdeps/x86_64/multiarch). With names, the names must be related.
func implements(leaf, f *image.Function) bool {
	if leaf.Image != f.Image || !f.Indirect() {
		return false
	}
	if leaf.System == "" {
		return true
	}
	return related(stem(leaf.System), stem(f.System))
}

func stem(name string) string {
	name, _, _ = strings.Cut(strings.TrimLeft(name, "_"), "_")
	return name
}

func related(a, b string) bool {
	copies := func(s string) bool { return s == "memcpy" || s == "memmove" || s == "mempcpy" }
	return a == b || copies(a) && copies(b)
}
