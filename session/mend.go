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

// mender puts back frames by what the code says.
type mender struct {
	session *Session
	code    codeIndex
	leaves  []unwind.FrameState // by Loc; stateUnasked where not looked up yet
	sites   []*site             // by Loc of a return address; nil where not looked up yet
	plans   map[planKey]*plan

	// Samples whose leaf has no frame, under a direct call of the leaf, or of
	// something else: mostly the latter if chains are made by frame pointers.
	// Recordings with other chains lack nothing.
	direct, elsewhere uint64
}

const stateUnasked = ^unwind.FrameState(0)

// site is the call before a return address.
type site struct {
	isCall bool
	target *image.Function // nil for an indirect call
	// functions are those an indirect call was seen to call, with how often.
	functions []*image.Function
	counts    []int
	many      bool // too many to guess
}

// maxTargets is up to how many functions called by an indirect call one is
// guessed.
const maxTargets = 16

func (c *site) calls(f *image.Function) {
	if c.many {
		return
	}
	for i, g := range c.functions {
		if g == f {
			c.counts[i]++
			return
		}
	}
	c.functions, c.counts = append(c.functions, f), append(c.counts, 1)
	if len(c.functions) > maxTargets {
		c.functions, c.counts, c.many = nil, nil, true
	}
}

// planKey is where a frame is missing: above a leaf, below a direct call of
// caller or below the indirect call before ret.
type planKey struct {
	caller, leaf *image.Function
	ret          image.Loc
}

// plan is what is to be done about it.
type plan struct {
	verdict verdict
	frames  [][]image.Loc // to be put between leaf and return address: one of these
	turn    int
	targets int // functions the indirect call was known to call when this was made
}

// verdict is what is known of a stack's second frame.
type verdict uint8

const (
	whole    verdict = iota // nothing is missing, as far as is known
	mended                  // the caller of the leaf was missing, and is known
	unmended                // it is missing, and not known
)

// maxPlans bounds the memory of a mender. Samples beyond are left as they are.
const maxPlans = 1 << 20

func newMender(s *Session) *mender {
	return &mender{
		session: s, plans: map[planKey]*plan{},
		code: codeIndex{store: s.store, bodies: map[*image.Function]*body{}},
	}
}

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
	p := m.look(out.Stack[user:])
	switch {
	case p == nil || p.verdict == whole:
	case p.verdict == unmended:
		s.stats.Unmended++
	case p.verdict == mended:
		frames := p.frames[p.turn%len(p.frames)]
		p.turn++
		rest := out.Stack[user+1:]
		out.Stack = append(out.Stack, frames...) // room
		copy(out.Stack[user+1+len(frames):], rest)
		copy(out.Stack[user+1:], frames)
		out.Repaired = len(frames)
		s.stats.Mended++
	}
}

// hopeless is the plan for chains that lead astray at once.
var hopeless = &plan{verdict: unmended}

// look decides about a user stack, and learns from it what indirect calls call.
// nil means that nothing is missing, as far as is known.
func (m *mender) look(stack []image.Loc) *plan {
	state := m.frameState(stack[0])
	if len(stack) > 2 {
		if c := m.site(stack[2]); c.isCall && c.target == nil {
			if f := m.session.store.Function(stack[1]); f != nil {
				c.calls(f)
			}
		}
	}
	if state == unwind.FrameUnknown {
		return nil
	}
	if len(stack) == 1 || !m.site(stack[1]).isCall {
		if state == unwind.FrameCallers && (len(stack) == 1 || m.nowhere(stack[1])) && !m.outermost(stack[0]) {
			return hopeless
		}
		return nil
	}
	leaf := m.session.store.Function(stack[0])
	if leaf == nil {
		return nil
	}
	c := m.site(stack[1])
	switch {
	case state == unwind.FrameOwn:
		if c.target == nil {
			c.calls(leaf)
		}
	case c.target != nil:
		return m.between(c.target, leaf, state)
	case state == unwind.FrameCallers:
		return m.guess(c, stack[1], leaf)
	}
	return nil
}

// between plans to put back a frame of caller, which was called where the
// chain goes on, above leaf.
func (m *mender) between(caller, leaf *image.Function, state unwind.FrameState) *plan {
	if caller == leaf {
		m.direct++
		return nil // the chain is right; or the leaf called itself, which is not to be seen
	}
	k := planKey{caller: caller, leaf: leaf}
	p := m.plans[k]
	if p == nil {
		p = m.newPlan(k)
		switch {
		case same(caller, leaf) || implements(leaf, caller):
		default:
			p.frames = m.code.paths(caller, leaf)
			if len(p.frames) > 0 {
				p.verdict = mended
			} else if !m.code.jumpsTo(caller, leaf) { // a jump leaves the caller for good
				p.verdict = unmended
			}
		}
	}
	if p.verdict == whole {
		m.direct++
	} else {
		m.elsewhere++
	}
	if p.verdict == unmended && state == unwind.FrameImplied {
		return nil
	}
	return p
}

// guess plans for an indirect call by what it was seen to call: of the
// functions that call leaf the one seen most often.
func (m *mender) guess(c *site, ret image.Loc, leaf *image.Function) *plan {
	switch {
	case m.direct >= m.elsewhere:
		return nil
	case c.many:
		return hopeless
	}
	k := planKey{ret: ret, leaf: leaf}
	p := m.plans[k]
	if p != nil && p.targets == len(c.functions) {
		return p
	}
	if p == nil {
		p = m.newPlan(k)
	}
	p.verdict, p.targets = unmended, len(c.functions)
	best := 0
	for i, f := range c.functions {
		if c.counts[i] > best && !same(f, leaf) {
			if frames := m.code.directPaths(f, leaf); len(frames) > 0 {
				best, p.verdict, p.frames = c.counts[i], mended, frames
			}
		}
	}
	return p
}

func (m *mender) newPlan(k planKey) *plan {
	p := &plan{}
	if len(m.plans) < maxPlans {
		m.plans[k] = p
	}
	return p
}

// site returns the call before a return address.
func (m *mender) site(ret image.Loc) *site {
	for int(ret) >= len(m.sites) {
		m.sites = append(m.sites, make([]*site, m.session.store.NumLocs()-len(m.sites))...)
	}
	if m.sites[ret] == nil {
		c := &site{}
		c.target, c.isCall = m.code.callAt(m.session.store.CallSite(ret))
		m.sites[ret] = c
	}
	return m.sites[ret]
}

// nowhere reports whether nothing is mapped at a return address.
func (m *mender) nowhere(ret image.Loc) bool {
	return m.session.store.Addr(ret).Image.Kind == image.Unknown
}

// outermost reports whether nobody calls the function a leaf is in.
func (m *mender) outermost(leaf image.Loc) bool {
	f := m.session.store.Function(leaf)
	return f == nil || f.System == "_start" || f.System == "_dl_start"
}

// frameState asks the call frame information of the leaf's image, once.
func (m *mender) frameState(leaf image.Loc) unwind.FrameState {
	for n := len(m.leaves); int(leaf) >= n; n++ {
		m.leaves = append(m.leaves, stateUnasked)
	}
	if m.leaves[leaf] == stateUnasked {
		m.leaves[leaf] = m.askFrameState(m.session.store.Addr(leaf))
	}
	return m.leaves[leaf]
}

func (m *mender) askFrameState(leaf image.Addr) unwind.FrameState {
	if leaf.Image.Kind != image.File && leaf.Image.Kind != image.VDSO {
		return unwind.FrameUnknown
	}
	vaddr, ok := leaf.Image.Vaddr(leaf.Offset)
	if !ok {
		return unwind.FrameUnknown
	}
	return m.session.moduleOf(leaf.Image).FrameState(vaddr, m.session.source.Meta().Arch)
}
