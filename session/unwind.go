package session

import (
	"strconv"

	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/perfdata"
	"github.com/perfcorrect/perfcorrect/unwind"
)

// stack makes the frames of a sample of best evidence: registers and a copy of
// the stack, the branch records of a PMU in call-stack mode, the callchain. It
// returns how many of them the callchain lacked.
func (s *Session) stack(r *perfdata.Sample, th *Thread) (repaired int, o unwind.Outcome) {
	switch {
	case unwind.HasCallStack(r):
		s.frames, o = th.calls.Frames(s.frames[:0], r, s.branchRegisters())
		s.stats.Stitched += uint64(th.calls.Stitched())
		return 0, o
	case len(r.StackUser) > 0 && len(r.RegsUser.Values) > 0:
		u := s.unwinderOf()
		before := u.Stats.PutBack
		s.memory.process = th.process
		s.frames, o = u.Sample(s.frames[:0], r, &s.memory)
		if len(s.frames) > 0 {
			return int(u.Stats.PutBack - before), o
		}
	}
	s.frames, o = unwind.Callchain(s.frames[:0], r)
	return 0, o
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
		o.module = m.session.moduleOf(at)
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

// moduleOf makes the unwinder's view of the object a mapping shows, nil if it
// has no file.
func (s *Session) moduleOf(m *mapping) *unwind.Module {
	switch m.obj.key.Kind {
	case image.File, image.VDSO:
	default:
		return nil
	}
	im := s.imageOf(m.obj)
	s.tellImage(m, im)
	return unwind.NewModule(&source{im})
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
