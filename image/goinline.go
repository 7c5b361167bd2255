package image

import (
	"bytes"
	"debug/elf"
)

// goFrame is a function at an address, by itself or inlined.
type goFrame struct {
	position
	name  string
	start int
}

// inlined returns the functions at an address relative to the entry of f, the
// innermost first (runtime/symtabinl.go, inlineUnwinder).
func (t *goTable) inlined(f goFunc, pc uint32) (frames []goFrame) {
	pcdata, funcdata := t.lists(f)
	var tree []byte
	if len(pcdata) > goInlineIndex*4 && len(funcdata) > goInlineTree*4 && t.inline != nil {
		if off := t.order.Uint32(funcdata[goInlineTree*4:]); off != ^uint32(0) {
			tree = t.inline(off)
		}
	}
	for tree != nil && len(frames) < maxInlined {
		i := t.value(t.order.Uint32(pcdata[goInlineIndex*4:]), pc)
		if i < 0 {
			break
		}
		name, parent, start, ok := t.call(tree, uint64(i))
		if !ok || parent >= f.end-f.entry {
			break
		}
		frames = append(frames, goFrame{t.position(f, pc), name, start})
		pc = parent
	}
	return append(frames, goFrame{t.position(f, pc), t.name(t.field(f, 1)), t.startLine(f)})
}

// call reads entry i of an inlining tree.
func (t *goTable) call(tree []byte, i uint64) (name string, parent uint32, start int, ok bool) {
	size, nameAt, parentAt := uint64(16), 4, 8
	if t.old {
		size, nameAt, parentAt = 20, 12, 16
	}
	if i >= uint64(len(tree))/size {
		return "", 0, 0, false
	}
	b := tree[i*size:]
	if !t.old {
		start = int(t.order.Uint32(b[12:]) & 0x7fffffff)
	}
	off := t.order.Uint32(b[nameAt:])
	if off > 0 && uint64(off) < uint64(len(t.names)) && t.names[off-1] == 0 { // the start of a name
		name = t.name(off)
	}
	return name, t.order.Uint32(b[parentAt:]), start, name != ""
}

// Words of runtime.moduledata.
const (
	goModuleNames   = 1
	goModuleText    = 22
	goModuleFunc118 = 38 // gofunc, which funcdata is relative to
	goModuleFunc120 = 40
	goModuleWords   = 48
)

// module finds what only the program's moduledata tells: where its text
// begins, if the header does not say, and where inlining trees are.
func (t *goTable) module(e *elfFile, table uint64) {
	text := e.f.Section(".text")
	if text != nil && t.text == 0 {
		t.text = text.Addr
	}
	m := e.findModule(t, table)
	if m == nil {
		return
	}
	if at := m.word(goModuleText); at != 0 {
		t.text = at
	}
	wanted := goModuleFunc120
	if t.old {
		wanted = goModuleFunc118
	}
	base := m.word(wanted)
	// In newer versions the trees are in the table itself.
	s := e.containing(base)
	if s == nil {
		return
	}
	b, err := e.data(s)
	if err != nil || base-s.Addr >= uint64(len(b)) {
		return
	}
	data := b[base-s.Addr:]
	t.inline = func(off uint32) []byte {
		if uint64(off) >= uint64(len(data)) {
			return nil
		}
		return data[off:]
	}
}

// containing returns the section with content that an address is in.
func (e *elfFile) containing(addr uint64) *elf.Section {
	for _, s := range e.f.Sections {
		if s.Flags&elf.SHF_ALLOC != 0 && s.Type != elf.SHT_NOBITS && addr >= s.Addr && addr-s.Addr < s.Size {
			return s
		}
	}
	return nil
}

// goModule is a moduledata.
type goModule struct {
	t      *goTable
	b      []byte
	addr   uint64
	relocs map[uint64]uint64
}

// word is a pointer, as linked: in a position-independent program it may be
// in a relocation only.
func (m *goModule) word(i int) uint64 {
	if v, ok := m.relocs[m.addr+uint64(i*m.t.word)]; ok {
		return v
	}
	return m.t.pointer(m.b[i*m.t.word:])
}

// findModule looks for a pointer to the table that is followed by one to the
// names in it.
func (e *elfFile) findModule(t *goTable, table uint64) *goModule {
	relocs := e.relativeRelocs(t)
	names := table + uint64(len(t.b)-len(t.names))
	want := make([]byte, t.word)
	if t.word == 4 {
		t.order.PutUint32(want, uint32(table))
	} else {
		t.order.PutUint64(want, table)
	}
	size := goModuleWords * t.word
	for _, s := range e.f.Sections {
		if s.Flags&(elf.SHF_ALLOC|elf.SHF_WRITE) != elf.SHF_ALLOC|elf.SHF_WRITE || s.Type == elf.SHT_NOBITS {
			continue
		}
		b, err := e.data(s)
		if err != nil {
			continue
		}
		for off := 0; off+size <= len(b); off += t.word {
			if len(relocs) == 0 { // leap to the next
				i := bytes.Index(b[off:], want)
				if i < 0 {
					break
				}
				off = (off + i + t.word - 1) / t.word * t.word
				if off+size > len(b) {
					break
				}
			}
			m := &goModule{t, b[off:], s.Addr + uint64(off), relocs}
			if m.word(0) == table && m.word(goModuleNames) == names {
				return m
			}
		}
	}
	return nil
}

// relativeRelocs returns the values of pointers that the dynamic linker only
// moves with the program (R_X86_64_RELATIVE, R_AARCH64_RELATIVE), by address.
func (e *elfFile) relativeRelocs(t *goTable) map[uint64]uint64 {
	const entry, x86, arm64 = 24, 8, 1027
	b, err := e.section(".rela.dyn")
	if err != nil || t.word != 8 {
		return nil
	}
	relocs := map[uint64]uint64{}
	for ; len(b) >= entry; b = b[entry:] {
		if typ := uint32(t.order.Uint64(b[8:])); typ == x86 || typ == arm64 {
			relocs[t.order.Uint64(b)] = t.order.Uint64(b[16:])
		}
	}
	return relocs
}
