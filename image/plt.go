package image

import (
	"debug/elf"
	"encoding/binary"
	"strings"
)

// pltEntry is a stub of a procedure linkage table: it jumps through a slot of
// the global offset table.
type pltEntry struct {
	start, end uint64 // link-time addresses
	slot       uint64 // address of the slot, 0 if not known
	index      int    // of the relocation in .rela.plt, -1 if not known
}

// addPLT adds the stubs of a file as functions "target@plt", the form of perf
// and objdump. The target is the symbol of the relocation that fills the slot
// the stub jumps through, found by decoding the stub: counting entries, as
// perf did until 6.2, fails for .plt.sec and .plt.got.
func (e *elfFile) addPLT(b *symtabBuilder) error {
	if !e.is64() {
		return nil
	}
	var entries []pltEntry
	for _, s := range e.f.Sections {
		if !pltSection(s) {
			continue
		}
		code, err := e.data(s)
		if err != nil {
			return err
		}
		switch e.f.Machine {
		case elf.EM_X86_64:
			entries = append(entries, pltX86(code, s.Addr, stubSize(s, code))...)
		case elf.EM_AARCH64:
			entries = append(entries, pltARM64(code, s.Addr)...)
		}
	}
	if len(entries) == 0 {
		return nil
	}
	rel, err := e.slots()
	if err != nil {
		return err
	}
	for _, p := range entries {
		r, ok := rel.bySlot[p.slot]
		if !ok && p.index >= 0 && p.index < len(rel.plt) {
			r, ok = rel.plt[p.index], true
		}
		off, in := e.offset(p.start)
		if !ok || !in {
			continue
		}
		if name := rel.name(r); name != "" {
			b.add(symbol{start: off, end: off + (p.end - p.start), name: name + "@plt",
				bind: elf.STB_GLOBAL, typ: elf.STT_FUNC, stub: true})
		}
	}
	return nil
}

func pltSection(s *elf.Section) bool {
	return s.Type == elf.SHT_PROGBITS && s.Flags&elf.SHF_EXECINSTR != 0 &&
		(s.Name == ".plt" || s.Name == ".iplt" || strings.HasPrefix(s.Name, ".plt."))
}

// stubSize is the size of an x86-64 stub. The section header says it only for
// some linkers; .plt.got has 8-byte stubs unless they begin with ENDBR64.
func stubSize(s *elf.Section, code []byte) int {
	if s.Entsize == 8 || s.Entsize == 16 {
		return int(s.Entsize)
	}
	if s.Name == ".plt.got" && !isENDBR64(code) {
		return 8
	}
	return 16
}

// pltX86 decodes x86-64 stubs: "[endbr64] [bnd] jmp *disp(%rip)" names its
// slot; "[endbr64] push $n; [bnd] jmp plt0" (a lazy stub beside .plt.sec)
// names its relocation.
func pltX86(code []byte, addr uint64, size int) (entries []pltEntry) {
	for at := 0; at+size <= len(code); at += size {
		stub := code[at : at+size]
		p := pltEntry{start: addr + uint64(at), end: addr + uint64(at+size), index: -1}
		i := 0
		if isENDBR64(stub) {
			i = 4
		}
		if i < len(stub) && stub[i] == 0xf2 {
			i++
		}
		switch {
		case i+6 <= len(stub) && stub[i] == 0xff && stub[i+1] == 0x25:
			disp := int32(binary.LittleEndian.Uint32(stub[i+2:]))
			p.slot = p.start + uint64(i+6) + uint64(int64(disp))
		case i+5 <= len(stub) && stub[i] == 0x68:
			p.index = int(binary.LittleEndian.Uint32(stub[i+1:]))
		default:
			continue
		}
		entries = append(entries, p)
	}
	return entries
}

// pltARM64 decodes aarch64 stubs: "[bti c] adrp x16, page; ldr x17, [x16,
// #off]; ...; br x17".
func pltARM64(code []byte, addr uint64) (entries []pltEntry) {
	const (
		btiC      = 0xd503245f
		branchX17 = 0xd61f0220
		autBranch = 0xd71f0a11 // braa x17, x16
	)
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(code[i:]) }
	for i := 0; i+8 <= len(code); i += 4 {
		adrp, ldr := word(i), word(i+4)
		if adrp&0x9f00001f != 0x90000010 || ldr&0xffc003ff != 0xf9400211 {
			continue
		}
		pages := int64(int32(adrp<<8)>>13)<<2 | int64(adrp>>29&3)
		pc := addr + uint64(i)
		p := pltEntry{start: pc, index: -1}
		p.slot = pc&^0xfff + uint64(pages<<12) + uint64(ldr>>10&0xfff)*8
		if i >= 4 && word(i-4) == btiC {
			p.start -= 4
		}
		for j := i + 8; j+4 <= len(code) && j < i+24; j += 4 {
			if w := word(j); w == branchX17 || w == autBranch {
				p.end = addr + uint64(j) + 4
				break
			}
		}
		if p.end != 0 {
			entries = append(entries, p)
		}
	}
	return entries
}

func isENDBR64(b []byte) bool {
	return len(b) >= 4 && b[0] == 0xf3 && b[1] == 0x0f && b[2] == 0x1e && b[3] == 0xfa
}

// relocations are the dynamic relocations that fill slots with functions.
type relocations struct {
	bySlot map[uint64]slotReloc
	plt    []slotReloc // .rela.plt in order
	names  []string    // .dynsym by index
	ifuncs map[uint64]string
}

// slotReloc fills a slot with a symbol, or with what a resolver returns
// (IRELATIVE, symbol 0).
type slotReloc struct {
	symbol uint32
	addend uint64
}

func (r *relocations) name(s slotReloc) string {
	if s.symbol == 0 {
		return r.ifuncs[s.addend]
	}
	if int(s.symbol) < len(r.names) {
		return r.names[s.symbol]
	}
	return ""
}

// Relocation types that fill a slot with a function (psABI of x86-64 and
// AArch64).
func slotType(m elf.Machine, typ uint32) bool {
	switch m {
	case elf.EM_X86_64:
		switch elf.R_X86_64(typ) {
		case elf.R_X86_64_JMP_SLOT, elf.R_X86_64_GLOB_DAT, elf.R_X86_64_IRELATIVE:
			return true
		}
	case elf.EM_AARCH64:
		switch elf.R_AARCH64(typ) {
		case elf.R_AARCH64_JUMP_SLOT, elf.R_AARCH64_GLOB_DAT, elf.R_AARCH64_IRELATIVE:
			return true
		}
	}
	return false
}

// slots reads the relocations that fill slots, and the names they mean.
func (e *elfFile) slots() (*relocations, error) {
	r := &relocations{bySlot: map[uint64]slotReloc{}, ifuncs: map[uint64]string{}}
	const size = 24 // Elf64_Rela
	for _, s := range e.f.Sections {
		if s.Type != elf.SHT_RELA || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		b, err := e.data(s)
		if err != nil {
			return nil, err
		}
		for ; len(b) >= size; b = b[size:] {
			info := e.order().Uint64(b[8:])
			rel := slotReloc{symbol: uint32(info >> 32), addend: e.order().Uint64(b[16:])}
			if slotType(e.f.Machine, uint32(info)) {
				r.bySlot[e.order().Uint64(b)] = rel
			}
			if s.Name == ".rela.plt" {
				r.plt = append(r.plt, rel)
			}
		}
	}
	err := e.rawSymbols(dynsymSection, func(_ int, y *rawSymbol) {
		r.names = append(r.names, plainName(y.name))
	})
	if err != nil && err != errNoSection {
		return nil, err
	}
	return r, e.nameResolvers(r)
}

// nameResolvers names what IRELATIVE relocations call: an indirect function
// has the address of its resolver. Of aliases the best names it.
func (e *elfFile) nameResolvers(r *relocations) error {
	best := map[uint64]symbol{}
	for _, typ := range []elf.SectionType{symtabSection, dynsymSection} {
		err := e.rawSymbols(typ, func(_ int, y *rawSymbol) {
			if y.typ() != elf.STT_GNU_IFUNC || y.shndx == elf.SHN_UNDEF || y.name == "" {
				return
			}
			n := symbol{name: plainName(y.name), bind: y.bind(), typ: y.typ()}
			if old, ok := best[y.value]; !ok || better(n, old) {
				best[y.value] = n
			}
		})
		if err != nil && err != errNoSection {
			return err
		}
	}
	for addr, y := range best {
		r.ifuncs[addr] = y.name
	}
	return nil
}

// ResolvePLT returns the function behind a PLT stub; f itself if it is no
// stub, nil if no image of the store defines the target.
//
// A recording does not tell what the dynamic linker bound, so the rule is the
// linker's default: the stub's own image for an indirect function it defines,
// else the first image (in the order in which they entered the store, which
// is load order in a single process) that exports the name. It is wrong for
// symbol versions, dlmopen namespaces, protected symbols and libraries that
// different processes load in different order. The target of an indirect
// function is the symbol of its resolver, not the implementation it chose.
func (s *Store) ResolvePLT(f *Function) *Function {
	if f == nil || !f.Stub {
		return f
	}
	if t, ok := s.plt[f]; ok {
		return t
	}
	name := strings.TrimSuffix(f.System, "@plt")
	var target *Function
	own := f.Image
	if off, ok := own.exported()[name]; ok {
		target = own.FunctionAt(off)
	}
	for i := 0; i < len(s.images) && target == nil; i++ {
		if im := s.images[i]; im != own && im.Kind == File {
			if off, ok := im.exported()[name]; ok {
				target = im.FunctionAt(off)
			}
		}
	}
	if s.plt == nil {
		s.plt = map[*Function]*Function{}
	}
	s.plt[f] = target
	return target
}

// Indirect reports whether f is the resolver of an indirect function that its
// image exports: code that runs once, to choose the implementation calls go to.
func (f *Function) Indirect() bool {
	f.Image.exported()
	return f.Image.resolvers[f.Entry]
}

// exported returns the functions an image offers to others, by name.
func (im *Image) exported() map[string]uint64 {
	im.load()
	if im.exports != nil || im.file == nil {
		return im.exports
	}
	im.exports, im.resolvers = map[string]uint64{}, map[uint64]bool{}
	im.note(im.file, im.file.rawSymbols(dynsymSection, func(_ int, y *rawSymbol) {
		if y.shndx == elf.SHN_UNDEF || y.bind() == elf.STB_LOCAL || (y.typ() != elf.STT_FUNC && y.typ() != elf.STT_GNU_IFUNC) {
			return
		}
		if off, ok := im.file.offset(y.value); ok {
			im.exports[plainName(y.name)] = off
			if y.typ() == elf.STT_GNU_IFUNC {
				im.resolvers[off] = true
			}
		}
	}))
	return im.exports
}
