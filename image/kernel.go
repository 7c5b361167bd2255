package image

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
)

var hostOrder = binary.NativeEndian

// loadKernel names the kernel proper from a vmlinux given by the user, else
// from kallsyms, else from a vmlinux found by build ID.
func (im *Image) loadKernel() {
	s := im.store
	if s.opt.Vmlinux != "" && im.loadVmlinux([]string{s.opt.Vmlinux}) {
		return
	}
	ks := s.kernelSymbolsOf(im, im.BuildID)
	if ks.k != nil && ks.k.core != nil {
		im.symbols = ks.k.core
		return
	}
	paths := s.cached(im.BuildID, "elf")
	paths = append(paths, s.debugFiles(im.BuildID)...)
	if im.BuildID != "" && im.loadVmlinux(paths) {
		return
	}
	if ks.problem != nil {
		im.problems = append(im.problems, *ks.problem)
	}
}

// loadVmlinux reads the symbols of a kernel ELF and moves them by the
// difference between the recorded address of a reference symbol and the
// file's (KASLR; perf's ref_reloc_sym).
func (im *Image) loadVmlinux(paths []string) bool {
	e := im.openFirst(paths)
	if e == nil {
		return false
	}
	slide, ok := im.slide(e)
	if !ok {
		im.problems = append(im.problems, Problem{Image: im, Path: e.path, Kind: Damaged,
			What: fmt.Sprintf("no symbol %q to relocate by", im.reloc.symbol)})
		e.close()
		return false
	}
	var b symtabBuilder
	im.note(e, e.addSymbols(&b, symtabSection, func(v uint64) (uint64, bool) { return v + slide, true }))
	im.file, im.move = e, slide
	im.symbols = b.finish()
	return true
}

// slide is how far the recorded kernel was from where vmlinux was linked.
func (im *Image) slide(e *elfFile) (uint64, bool) {
	if im.reloc.symbol == "" {
		return 0, true
	}
	var at uint64
	found := false
	im.note(e, e.rawSymbols(symtabSection, func(_ int, y *rawSymbol) {
		if !found && y.name == im.reloc.symbol {
			at, found = y.value, true
		}
	}))
	return im.reloc.addr - at, found
}

// loadModule names a kernel module from kallsyms, else from its .ko file.
func (im *Image) loadModule() {
	s := im.store
	ks := s.kernelSymbolsOf(im, s.kernelBuildID())
	if ks.k != nil {
		if t := ks.k.modules[im.moduleName()]; t != nil && im.reloc.addr != 0 {
			im.symbols = t.moved(im.reloc.addr)
			return
		}
	}
	if im.loadObject(); im.symbols == nil && len(im.problems) == 0 && ks.problem != nil {
		im.problems = append(im.problems, *ks.problem)
	}
}

// kernelBuildID is the build ID of the recorded kernel, "" if unknown.
func (s *Store) kernelBuildID() string {
	for _, im := range s.images {
		if im.Kind == Kernel && im.BuildID != "" {
			return im.BuildID
		}
	}
	return ""
}

// moduleName is the name the kernel knows a module by: "nf_tables" for
// "[nf_tables]" and "/lib/modules/.../nf-tables.ko.xz".
func (im *Image) moduleName() string {
	name := strings.Trim(filepath.Base(im.Path), "[]")
	name, _, _ = strings.Cut(name, ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// moved returns the table with starts relative to an address; symbols below
// it are left out.
func (t *symtab) moved(base uint64) *symtab {
	var b symtabBuilder
	for _, y := range t.all {
		if y.start >= base {
			y.start, y.end = y.start-base, y.end-base
			b.add(y)
		}
	}
	return b.finish()
}

// loadObject reads the symbols of an uncompressed .ko file. A module is
// loaded section by section; .text comes first, so that its symbols lie at
// their offsets in the section (kernel/module/main.c, layout_sections). Other
// sections are placed by the kernel and are not known from the file.
func (im *Image) loadObject() {
	if !strings.HasPrefix(im.Path, "/") {
		return
	}
	s := im.store
	paths := append([]string{filepath.Join(s.opt.Symfs, im.Path)}, s.cached(im.BuildID, "elf")...)
	e := im.openFirst(paths)
	if e == nil {
		return
	}
	for i, sec := range e.f.Sections {
		if sec.Name != ".text" {
			continue
		}
		// Offset 0 of the image is byte 0 of .text.
		e.segments = []segment{{off: 0, vaddr: 0, filesz: sec.Size, memsz: sec.Size, exec: true}}
		var b symtabBuilder
		im.note(e, e.addSectionSymbols(&b, i))
		im.symbols = b.finish()
	}
	e.close()
}
