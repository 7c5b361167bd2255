package image

import (
	"cmp"
	"debug/elf"
	"slices"

	"github.com/perfcorrect/perfcorrect/image/x86"
)

// callSite is a call instruction: where it is and where it returns to.
type callSite struct{ at, next uint64 }

// maxFunction bounds the bytes of one function that are decoded for its
// calls; behind it, single calls are found by their pattern.
const maxFunction = 4 << 20

// CallSite returns the address of the call instruction a return address
// belongs to, with Return false; for an address that is no return address,
// itself. On x86-64 instructions have no fixed length, so the function is
// decoded from its entry, once; where the entry is not known, or data in
// between derails the decoder, the bytes before the return address are
// matched against the forms of a call; where there is no code at all, the
// length of a call is guessed (callLength).
func (s *Store) CallSite(l Loc) Addr {
	if int(l) >= len(s.sites) {
		s.sites = grow(s.sites, len(s.locs.keys))
	}
	a := s.Addr(l)
	if !a.Return {
		return a
	}
	if s.sites[l] == 0 {
		s.sites[l] = a.Image.callBefore(a.Offset, s.Function(l)) + 1
	}
	return Addr{Image: a.Image, Offset: s.sites[l] - 1}
}

// callBefore returns the offset of the call that returns to ret, in f.
func (im *Image) callBefore(ret uint64, f *Function) uint64 {
	im.load()
	if ret == 0 {
		return 0
	}
	if im.file == nil {
		return ret - min(ret, im.store.callLength())
	}
	switch im.file.f.Machine {
	case elf.EM_AARCH64:
		return ret - min(ret, 4)
	case elf.EM_X86_64:
	default:
		return ret - 1
	}
	if f != nil {
		calls := im.calls(f)
		i, ok := slices.BinarySearchFunc(calls, ret, func(c callSite, r uint64) int { return cmp.Compare(c.next, r) })
		if ok {
			return calls[i].at
		}
	}
	const longest = 9 // prefixes, REX, FF, ModRM, SIB, disp32
	n := min(ret, longest)
	if n := callPattern(im.Text(ret-n, int(n)), func(target int64) bool { return im.isText(ret + uint64(target)) }); n > 0 {
		return ret - uint64(n)
	}
	return ret - 1
}

// callLength is how long a call is taken to be where there is no code to read,
// above all in that of JIT compilers: 5 bytes on x86-64, a call with a 32-bit
// displacement, which is what most of them are; 4 on AArch64, where all are.
// The machine is that of the first file of the recording that was found; 1, an
// address inside the call on any machine, if there is none.
func (s *Store) callLength() uint64 {
	for _, im := range s.images {
		if im.file == nil {
			continue
		}
		switch im.file.f.Machine {
		case elf.EM_X86_64:
			return 5
		case elf.EM_AARCH64:
			return 4
		}
		break
	}
	return 1
}

// isText says whether an offset is in executable bytes of the file.
func (im *Image) isText(offset uint64) bool {
	if im.Kind == Kernel {
		return true
	}
	for _, g := range im.file.segments {
		if g.exec && offset >= g.off && offset-g.off < g.filesz {
			return true
		}
	}
	return false
}

// calls returns the calls of a function in order of address.
func (im *Image) calls(f *Function) []callSite {
	if c, ok := im.callIndex[f.Entry]; ok {
		return c
	}
	if im.callIndex == nil {
		im.callIndex = map[uint64][]callSite{}
	}
	var calls []callSite
	if f.End-f.Entry <= maxFunction {
		calls = callsIn(im.Text(f.Entry, int(f.End-f.Entry)), f.Entry)
	}
	im.callIndex[f.Entry] = calls
	return calls
}

// callsIn decodes code from its first byte and returns the calls in it. A
// byte that begins no instruction is skipped: the decoder falls into step
// again after a few instructions.
func callsIn(code []byte, base uint64) (calls []callSite) {
	for at := 0; at < len(code); {
		inst, err := x86.Decode(code[at:], base+uint64(at))
		if err != nil {
			at++
			continue
		}
		if inst.IsCall() {
			calls = append(calls, callSite{inst.PC, inst.End()})
		}
		at += inst.Len
	}
	return calls
}

// callPattern returns the length of the call instruction that code ends in,
// 0 if there is none: "E8 rel32" if its target is code, else the longest form
// of "FF /2".
func callPattern(code []byte, isText func(rel int64) bool) int {
	n := len(code)
	if n >= 5 && code[n-5] == 0xe8 {
		rel := int32(uint32(code[n-4]) | uint32(code[n-3])<<8 | uint32(code[n-2])<<16 | uint32(code[n-1])<<24)
		if isText(int64(rel)) {
			return 5
		}
	}
	for length := min(n, 9); length >= 2; length-- {
		if isIndirectCall(code[n-length:]) {
			return length
		}
	}
	return 0
}

// isIndirectCall says whether b is exactly one "[notrack] [bnd] [REX] FF /2".
func isIndirectCall(b []byte) bool {
	inst, err := x86.Decode(b, 0)
	return err == nil && inst.Control == x86.IndirectCall && inst.Len == len(b)
}

// Text returns n bytes of code at an offset of the image, fewer where the
// file ends, none where there is no file. Offsets are those of Addr.
func (im *Image) Text(offset uint64, n int) []byte {
	im.load()
	if im.file == nil || n <= 0 {
		return nil
	}
	if im.Kind == Kernel {
		off, ok := im.file.offset(offset - im.move)
		if !ok {
			return nil
		}
		offset = off
	}
	return im.file.text(offset, n)
}
