package session

import (
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/unwind"
)

// cacheBits is the size of the location cache: 4096 entries of 24 bytes fit
// the second-level cache of a CPU, and the hot addresses of a program are
// fewer.
const cacheBits = 12

// located is an entry of the direct-mapped cache from (state of an address
// space, address) to location. A space that changes gets a new number, so its
// old entries never match again.
type located struct {
	addr    uint64
	gen     uint32
	loc     image.Loc
	ret     bool
	unknown bool
}

type locCache [1 << cacheBits]located

// nextGen gives a changed space a number that no other state of a space has.
func (s *Session) nextGen(sp *space) {
	s.gen++
	sp.gen = s.gen
}

// locate returns the location of a frame of a thread.
func (s *Session) locate(p *process, f unwind.Frame) image.Loc {
	mode := f.Mode
	if mode == unwind.ModeUnknown {
		mode = halfOf(f.Addr)
	}
	gen := s.kernel.over.gen
	switch mode {
	case unwind.ModeUser:
		gen = p.space.gen
	case unwind.ModeKernel:
	default:
		gen = 0 // hypervisor and guests: nothing is known of their mappings
	}
	slot := (f.Addr ^ uint64(gen)<<40) * 0x9E3779B97F4A7C15 >> (64 - cacheBits)
	e := &s.cache[slot]
	if e.addr != f.Addr || e.gen != gen || e.ret != f.Return || e.loc == noLoc {
		*e = s.lookup(p, f, mode)
		e.gen = gen
	}
	s.stats.Frames++
	if e.unknown {
		s.stats.Unresolved++
	}
	return e.loc
}

const noLoc = ^image.Loc(0)

// lookup is locate without the cache.
func (s *Session) lookup(p *process, f unwind.Frame, mode unwind.Mode) located {
	m := s.mappingOf(p, f.Addr, f.Return, mode)
	if m == nil || m.obj == nil {
		l := s.store.Loc(image.Addr{Image: s.unknown, Offset: f.Addr, Return: f.Return})
		return located{addr: f.Addr, loc: l, ret: f.Return, unknown: true}
	}
	o := m.obj
	if o.image == nil {
		s.tellImage(m, s.imageOf(o))
	}
	l := s.store.Loc(image.Addr{Image: o.image, Offset: f.Addr - m.bias, Return: f.Return})
	return located{addr: f.Addr, loc: l, ret: f.Return}
}

// mappingOf finds the mapping an address belongs to. The return address of a
// call that ends its mapping lies behind it, so the byte before decides; if
// nothing is there, the address itself does.
func (s *Session) mappingOf(p *process, addr uint64, ret bool, mode unwind.Mode) *mapping {
	if ret && addr > 0 {
		if m := s.mappingOf(p, addr-1, false, mode); m != nil {
			return m
		}
	}
	switch mode {
	case unwind.ModeUser:
		return p.space.find(addr)
	case unwind.ModeKernel:
		return s.kernel.find(addr)
	}
	return nil
}

// halfOf guesses the mode from the address, for branch records and for samples
// that do not say: kernels live in the upper half.
func halfOf(addr uint64) unwind.Mode {
	if addr>>63 != 0 {
		return unwind.ModeKernel
	}
	return unwind.ModeUser
}
