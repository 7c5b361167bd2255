package session

import (
	"slices"
	"strconv"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/unwind"
)

// stack makes the stack of a sample by the best evidence it has: registers and
// a copy of the stack, the branch records of a PMU in call-stack mode, the
// callchain; and what that lacks by the code.
func (s *Session) stack(out *Sample, r *perfdata.Sample) {
	var byChain bool
	out.Repaired, out.Outcome, byChain = s.unwind(r, out.Thread)
	out.Stack = s.locate(out.Stack, out.Thread.process, s.frames)
	if byChain && !s.leaveChains && out.Outcome != unwind.Deferred {
		s.mend(out)
	}
}

// LeaveChains makes the session leave callchains as they were recorded: it does
// not put back what they lack. It is called before Samples.
func (s *Session) LeaveChains() { s.leaveChains = true }

// unwind makes s.frames of a sample. It returns how many of them the callchain
// lacked, and whether the callchain is all there was.
func (s *Session) unwind(r *perfdata.Sample, th *Thread) (repaired int, o unwind.Outcome, byChain bool) {
	switch {
	case unwind.HasCallStack(r):
		s.frames, o = th.calls.Frames(s.frames[:0], r, s.branchRegisters())
		s.stats.Stitched += uint64(th.calls.Stitched())
		return 0, o, false
	case len(r.StackUser) > 0 && len(r.RegsUser.Values) > 0 && !(s.leaveChains && chainHasUser(r)):
		u := s.unwinderOf()
		before := u.Stats.PutBack
		s.memory.process = th.process
		s.frames, o = u.Sample(s.frames[:0], r, &s.memory)
		if len(s.frames) > 0 {
			return int(u.Stats.PutBack - before), o, false
		}
	}
	s.frames, o = unwind.Callchain(s.frames[:0], r)
	return 0, o, true
}

// chainHasUser reports whether the callchain has a user part of more than an
// ip: what is recorded beside it is there to mend it.
func chainHasUser(r *perfdata.Sample) bool {
	i := slices.Index(r.Callchain, perfdata.ContextUser)
	return i >= 0 && len(r.Callchain) > i+2
}

// branchRegisters is how many branches the PMU can keep, 0 if not known.
func (s *Session) branchRegisters() int {
	for _, p := range s.source.Meta().PMUCaps {
		if n, err := strconv.Atoi(p.Caps["branches"]); err == nil {
			return n
		}
	}
	return 0
}

// unwinderOf returns the unwinder. A pipe tells the machine before its first
// sample.
func (s *Session) unwinderOf() *unwind.Unwinder {
	if s.unwinder == nil {
		s.unwinder = unwind.NewUnwinder(s.source.Meta().Arch)
		s.memory.session = s
	}
	return s.unwinder
}

// memory is the executable memory of a process, for the unwinder.
type memory struct {
	session *Session
	process *process
}

// Find returns what is mapped at addr.
func (m *memory) Find(addr uint64) (*unwind.Module, uint64, bool) {
	at := m.process.space.find(addr)
	if at == nil || at.obj == nil {
		return nil, 0, false
	}
	o := at.obj
	if !o.hasCFI {
		o.hasCFI = true
		switch o.key.Kind {
		case image.File, image.VDSO:
			im := m.session.imageOf(o)
			m.session.tellImage(at, im)
			o.module = m.session.moduleOf(im)
		}
	}
	if o.module == nil {
		return nil, addr, true
	}
	vaddr, ok := o.image.Vaddr(addr - at.bias)
	if !ok {
		return nil, addr, true
	}
	return o.module, vaddr, true
}

// moduleOf returns the unwinder's view of an image, always the same.
func (s *Session) moduleOf(im *image.Image) *unwind.Module {
	m := s.modules[im]
	if m == nil {
		m = unwind.NewModule(&source{im})
		s.modules[im] = m
	}
	return m
}

// source is an image as the unwinder reads it.
type source struct{ *image.Image }

// UnwindSections returns the image's call frame information.
func (s *source) UnwindSections() (unwind.Sections, error) {
	c := s.CFI()
	section := func(x image.CFISection) unwind.Section { return unwind.Section{Data: x.Data, Addr: x.Addr} }
	return unwind.Sections{
		BigEndian: c.BigEndian, AddrSize: c.AddrSize,
		EhFrameHdr: section(c.EhFrameHdr), EhFrame: section(c.EhFrame), DebugFrame: section(c.DebugFrame),
		Go: c.Go, TextBase: c.TextBase, DataBase: c.DataBase,
	}, nil
}
