package image

import (
	"bytes"
	"debug/elf"
	"fmt"
	"strings"
)

// rawSymbol is an entry of .symtab or .dynsym.
type rawSymbol struct {
	name        string
	info, other byte
	shndx       elf.SectionIndex
	value, size uint64
}

func (y *rawSymbol) typ() elf.SymType  { return elf.ST_TYPE(y.info) }
func (y *rawSymbol) bind() elf.SymBind { return elf.ST_BIND(y.info) }

// rawSymbols calls each for the entries of a symbol table section, index and
// all, the null entry included. debug/elf would make a struct and two strings
// of each; here names share the string table.
func (e *elfFile) rawSymbols(typ elf.SectionType, each func(i int, y *rawSymbol)) error {
	s := e.f.SectionByType(typ)
	if s == nil {
		return errNoSection
	}
	if int(s.Link) >= len(e.f.Sections) {
		return fmt.Errorf("%s: %s names section %d of %d as its strings", e.path, s.Name, s.Link, len(e.f.Sections))
	}
	tab, err := e.data(s)
	if err != nil {
		return err
	}
	strs, err := e.data(e.f.Sections[s.Link])
	if err != nil {
		return err
	}
	names, order := string(strs), e.order()
	size := 24
	if !e.is64() {
		size = 16
	}
	n := len(tab) / size
	if n > maxSymbols {
		return fmt.Errorf("%s: %d symbols", e.path, n)
	}
	var y rawSymbol
	for i := range n {
		b := tab[i*size : (i+1)*size]
		y.name = stringAt(names, order.Uint32(b))
		if size == 24 { // Elf64_Sym
			y.info, y.other, y.shndx = b[4], b[5], elf.SectionIndex(order.Uint16(b[6:]))
			y.value, y.size = order.Uint64(b[8:]), order.Uint64(b[16:])
		} else { // Elf32_Sym
			y.value, y.size = uint64(order.Uint32(b[4:])), uint64(order.Uint32(b[8:]))
			y.info, y.other, y.shndx = b[12], b[13], elf.SectionIndex(order.Uint16(b[14:]))
		}
		each(i, &y)
	}
	return nil
}

// stringAt returns the NUL-terminated string at an offset of a string table.
func stringAt(table string, off uint32) string {
	if uint64(off) >= uint64(len(table)) {
		return ""
	}
	s := table[off:]
	if i := strings.IndexByte(s, 0); i >= 0 {
		return s[:i]
	}
	return ""
}

// addSymbols adds the functions of a symbol table to b, at the offsets place
// gives their link-time addresses. The choice is perf's (tools/perf/util/symbol-elf.c,
// dso__load_sym_internal): functions, ifuncs, and untyped labels in text
// sections; data symbols, which only end the function before them; nothing
// in sections that are not loaded; no ARM mapping symbols.
func (e *elfFile) addSymbols(b *symtabBuilder, typ elf.SectionType, place func(vaddr uint64) (uint64, bool)) error {
	arm := e.f.Machine == elf.EM_ARM || e.f.Machine == elf.EM_AARCH64 || e.f.Machine == elf.EM_RISCV
	return e.rawSymbols(typ, func(_ int, y *rawSymbol) {
		data := false
		if y.name == "" || y.shndx == elf.SHN_UNDEF || y.shndx == elf.SHN_ABS || int(y.shndx) >= len(e.f.Sections) {
			return
		}
		sec := e.f.Sections[y.shndx]
		if sec.Flags&elf.SHF_ALLOC == 0 {
			return
		}
		switch y.typ() {
		case elf.STT_FUNC, elf.STT_GNU_IFUNC:
		case elf.STT_NOTYPE:
			vis := elf.ST_VISIBILITY(y.other)
			if sec.Flags&elf.SHF_EXECINSTR == 0 || vis == elf.STV_HIDDEN || vis == elf.STV_INTERNAL {
				return
			}
		case elf.STT_OBJECT:
			if sec.Flags&elf.SHF_EXECINSTR == 0 {
				return
			}
			data = true
		default:
			return
		}
		if arm && mappingSymbol(y.name) {
			return
		}
		value := y.value
		if e.f.Machine == elf.EM_ARM {
			value &^= 1 // the Thumb bit
		}
		off, ok := place(value)
		if !ok {
			return
		}
		end := off + y.size
		if end < off {
			end = off
		}
		b.add(symbol{start: off, end: end, name: y.name, bind: y.bind(), typ: y.typ(), data: data})
	})
}

// mappingSymbol recognises the labels by which ARM and RISC-V assemblers tell
// code from data ("$x", "$d.12"; ELF for the Arm Architecture, "Mapping
// symbols").
func mappingSymbol(name string) bool {
	return len(name) >= 2 && name[0] == '$' && strings.IndexByte("adtx", name[1]) >= 0 &&
		(len(name) == 2 || name[2] == '.')
}

// plainName takes the version off a symbol name ("memcpy@@GLIBC_2.14",
// "foo@VERS_1"). It is done after the choice among aliases, where perf counts
// the version into the length. Other names may hold an "@" too.
func plainName(name string) string {
	i := strings.IndexByte(name, '@')
	if i <= 0 {
		return name
	}
	version := strings.TrimPrefix(name[i+1:], "@")
	for _, c := range []byte(version) {
		if !(c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z') {
			return name
		}
	}
	return name[:i]
}

// cString cuts b at its first NUL.
func cString(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

const (
	symtabSection = elf.SHT_SYMTAB
	dynsymSection = elf.SHT_DYNSYM
)

// addSectionSymbols adds the functions of one section of a relocatable file,
// where symbol values are offsets in the section.
func (e *elfFile) addSectionSymbols(b *symtabBuilder, section int) error {
	return e.rawSymbols(symtabSection, func(_ int, y *rawSymbol) {
		if int(y.shndx) == section && (y.typ() == elf.STT_FUNC || y.typ() == elf.STT_NOTYPE) &&
			y.name != "" && !mappingSymbol(y.name) && y.value+y.size >= y.value {
			b.add(symbol{start: y.value, end: y.value + y.size, name: y.name, bind: y.bind(), typ: y.typ()})
		}
	})
}
