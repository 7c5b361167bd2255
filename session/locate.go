package session

import (
	"github.com/perfcorrect/perfcorrect/image"
	"github.com/perfcorrect/perfcorrect/unwind"
)

// cacheBits is the size of the location cache: 16384 entries of 16 bytes are
// more addresses than most programs are sampled at, and fit the second-level
// cache of a CPU.
const cacheBits = 14

// located is an entry of the direct-mapped cache from (state of an address
// space, address) to location. A space that changes gets a new number, so its
// old entries never match again.
type located struct {
	addr uint64
	tag  uint32 // number of the state<<2 | tagReturn | tagUnknown
	loc  image.Loc
}

const (
	tagReturn  = 1 // a return address
	tagUnknown = 2 // nothing is mapped there
)

type locCache [1 << cacheBits]located

// nextGen gives a changed space a number that no other state of a space has.
// (Numbers have 30 bits; by the time they come again, their entries are gone.)
func (s *Session) nextGen(sp *space) {
	s.gen = s.gen%(1<<30-2) + 1
	sp.gen = s.gen
}

// locate appends the locations of frames of a process to dst.
func (s *Session) locate(dst []image.Loc, p *process, frames []unwind.Frame) []image.Loc {
	s.stats.Frames += uint64(len(frames))
	user, kernel := p.space.gen<<2, s.kernel.over.gen<<2
	for _, f := range frames {
		mode := f.Mode
		if mode == unwind.ModeUnknown {
			mode = halfOf(f.Addr)
		}
		tag := user
		if mode != unwind.ModeUser {
			if tag = kernel; mode != unwind.ModeKernel {
				tag = foreignTag // nothing is known of the mappings of guests
			}
		}
		if f.Return {
			tag |= tagReturn
		}
		e := &s.cache[(f.Addr^uint64(tag)<<38)*0x9E3779B97F4A7C15>>(64-cacheBits)]
		if e.addr != f.Addr || e.tag&^tagUnknown != tag {
			*e = s.lookup(p, f, mode)
			e.tag |= tag
		}
		if e.tag&tagUnknown != 0 {
			s.stats.Unresolved++
		}
		dst = append(dst, e.loc)
	}
	return dst
}

// Numbers that nextGen does not give.
const (
	foreignTag = 0
	noTag      = (1<<30 - 1) << 2 // of free entries
)

// lookup is locate without the cache.
func (s *Session) lookup(p *process, f unwind.Frame, mode unwind.Mode) located {
	m := s.mappingOf(p, f.Addr, f.Return, mode)
	if m == nil || m.obj == nil {
		l := s.store.Loc(image.Addr{Image: s.unknown, Offset: f.Addr, Return: f.Return})
		return located{addr: f.Addr, loc: l, tag: tagUnknown}
	}
	o := m.obj
	if o.image == nil {
		s.tellImage(m, s.imageOf(o))
	}
	return located{addr: f.Addr, loc: s.store.Loc(image.Addr{Image: o.image, Offset: f.Addr - m.bias, Return: f.Return})}
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
