package session

import (
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/unwind"
)

// A callchain by frame pointers lacks the caller of the leaf wherever the leaf
// has not made the frame pointer its own: in its first instructions, in
// functions without a frame, and on the fast paths that compilers shrink-wrap.
// Where the sample has nothing else to tell the caller by, the code does: call
// frame information says that it is missing, and the call that follows in the
// chain says which function it was, since that was called there. Where in that
// function the leaf was called from can be seen too, if it calls the leaf in
// one place; several take turns.

// mender puts back frames by what the code says. Locations are of one store.
type mender struct {
	session *Session
	code    codeIndex
	plans   map[mendKey]*plan
	targets map[image.Loc]*calledFrom // by return address behind an indirect call

	// Samples whose leaf has no frame, under a direct call of the leaf, or of
	// something else: mostly the latter if chains are made by frame pointers.
	// Recordings with other chains lack nothing.
	direct, elsewhere uint64
}

// mendKey is the place of a stack where a frame may be missing: the leaf, and
// the return address next to it.
type mendKey struct{ leaf, ret image.Loc }

// noLoc stands for the return address of a chain that ends with its leaf.
const noLoc = ^image.Loc(0)

// plan is what is to be done about a mendKey.
type plan struct {
	verdict verdict
	count   *uint64       // mender.direct or elsewhere, if it is to be counted
	sites   [][]image.Loc // frames to be put between leaf and return address: one of these
	turn    int
	from    *calledFrom // if an indirect call decides: as it was with this many entries
	entries int
}

// verdict is what is known of a stack's second frame.
type verdict uint8

const (
	whole    verdict = iota // nothing is missing, as far as is known
	mended                  // the caller of the leaf was missing, and is known
	unmended                // it is missing, and not known
)

// calledFrom counts which functions an indirect call was seen to call.
type calledFrom struct {
	functions []*image.Function
	counts    []int
}

func (c *calledFrom) add(f *image.Function) {
	for i, g := range c.functions {
		if g == f {
			c.counts[i]++
			return
		}
	}
	c.functions, c.counts = append(c.functions, f), append(c.counts, 1)
}

// maxPlans bounds the memory of a mender. Samples of further places are left
// as they are.
const maxPlans = 1 << 20

// mend puts back what the user part of a stack by frame pointers lacks.
// s.frames are those of out.Stack.
func (s *Session) mend(out *Sample) {
	user := 0
	for user < len(s.frames) && s.frames[user].Mode != unwind.ModeUser {
		user++
	}
	if user >= len(s.frames) || s.frames[user].Return || user+1 < len(s.frames) && !s.frames[user+1].Return {
		return
	}
	if s.mender == nil {
		s.mender = newMender(s)
	}
	m := s.mender
	k := mendKey{out.Stack[user], noLoc}
	if user+1 < len(out.Stack) {
		k.ret = out.Stack[user+1]
	}
	p := m.plans[k]
	if p == nil {
		if len(m.plans) >= maxPlans {
			return
		}
		p = &plan{}
		m.plan(p, k)
		m.plans[k] = p
	} else if p.from != nil && p.entries != len(p.from.functions) {
		m.plan(p, k)
	}
	if p.count != nil {
		*p.count++
	}
	if user+2 < len(out.Stack) {
		m.learn(out.Stack[user+1], out.Stack[user+2])
	}
	switch {
	case p.verdict == unmended:
		s.stats.Unmended++
	case p.from != nil && m.direct > m.elsewhere:
	case p.verdict == mended:
		site := p.sites[p.turn]
		p.turn = (p.turn + 1) % len(p.sites)
		rest := out.Stack[user+1:]
		out.Stack = append(out.Stack, site...) // room
		copy(out.Stack[user+1+len(site):], rest)
		copy(out.Stack[user+1:], site)
		out.Repaired = len(site)
		s.stats.Mended++
	}
}

func newMender(s *Session) *mender {
	return &mender{
		session: s, code: codeIndex{store: s.store, bodies: map[*image.Function]*body{}},
		plans: map[mendKey]*plan{}, targets: map[image.Loc]*calledFrom{},
	}
}

// plan finds out what is missing at k.
func (m *mender) plan(p *plan, k mendKey) {
	turn := p.turn
	*p = plan{}
	store := m.session.store
	leaf := store.Function(k.leaf)
	if leaf == nil {
		return
	}
	state := m.frameState(k.leaf)
	if k.ret == noLoc {
		if state == unwind.FrameCallers && !outermost(leaf) {
			p.verdict = unmended
		}
		return
	}
	call, ok := m.code.callAt(store.CallSite(k.ret))
	switch {
	case !ok && state == unwind.FrameCallers && store.Addr(k.ret).Image.Kind == image.Unknown:
		p.verdict = unmended // the frame pointer led astray
	case !ok || state == unwind.FrameUnknown:
	case call.target != nil && state != unwind.FrameOwn:
		m.between(p, call.target, leaf)
		if state == unwind.FrameImplied && p.verdict == unmended {
			p.verdict = whole
		}
	case call.target == nil && state == unwind.FrameOwn:
		m.calledFrom(k.ret).add(leaf)
	case call.target == nil && state == unwind.FrameCallers:
		m.guess(p, k.ret, leaf)
	}
	p.turn = 0
	if n := len(p.sites); n > 0 {
		p.turn = turn % n
	}
}

// between plans to put back a frame of caller, which was called where the
// chain goes on, above leaf.
func (m *mender) between(p *plan, caller, leaf *image.Function) {
	if same(caller, leaf) || implements(leaf, caller) {
		p.count = &m.direct
		return // the chain is right; or the leaf called itself, which is not to be seen
	}
	p.count = &m.elsewhere
	paths := m.code.paths(caller, leaf)
	if len(paths) == 0 {
		p.verdict = unmended
		if m.code.jumpsTo(caller, leaf) {
			p.verdict = whole // the caller was left by the jump
		}
		return
	}
	p.verdict, p.sites = mended, paths
}

// guess plans for an indirect call by what it was seen to call: of the
// functions that call leaf the one seen most often.
func (m *mender) guess(p *plan, ret image.Loc, leaf *image.Function) {
	c := m.calledFrom(ret)
	p.from, p.entries = c, len(c.functions)
	p.verdict = unmended
	best := -1
	for i, f := range c.functions {
		if same(f, leaf) {
			continue
		}
		if best < 0 || c.counts[i] > c.counts[best] {
			if sites := m.code.paths(f, leaf); len(sites) > 0 {
				best, p.verdict, p.sites = i, mended, sites
			}
		}
	}
}

// learn notes which function an indirect call calls: callee is a return
// address in it, ret that of the call.
func (m *mender) learn(callee, ret image.Loc) {
	k := mendKey{callee, ret}
	if _, ok := m.plans[k]; ok || len(m.plans) >= maxPlans {
		return
	}
	m.plans[k] = &plan{}
	if call, ok := m.code.callAt(m.session.store.CallSite(ret)); !ok || call.target != nil {
		return
	}
	if f := m.session.store.Function(callee); f != nil {
		m.calledFrom(ret).add(f)
	}
}

// outermost reports whether nobody calls f.
func outermost(f *image.Function) bool {
	return f.System == "_start" || f.System == "_dl_start" || f.System == "" && f.Image.Kind != image.File
}

func (m *mender) calledFrom(ret image.Loc) *calledFrom {
	c := m.targets[ret]
	if c == nil {
		c = &calledFrom{}
		m.targets[ret] = c
	}
	return c
}

// frameState asks the call frame information of the leaf's image.
func (m *mender) frameState(leaf image.Loc) unwind.FrameState {
	a := m.session.store.Addr(leaf)
	mod := m.session.modules[a.Image]
	if mod == nil {
		if a.Image.Kind != image.File && a.Image.Kind != image.VDSO {
			return unwind.FrameUnknown
		}
		mod = m.session.moduleOf(a.Image)
	}
	vaddr, ok := a.Image.Vaddr(a.Offset)
	if !ok {
		return unwind.FrameUnknown
	}
	return mod.FrameState(vaddr, m.session.source.Meta().Arch)
}
