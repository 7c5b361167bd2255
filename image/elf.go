package image

import (
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// Limits on what a file may make us read. They are far above anything a
// linker writes; what exceeds them is damage or malice.
const (
	maxSections  = 1 << 17
	maxSymbols   = 1 << 25
	maxSection   = 4 << 30 // bytes of one section in memory, decompressed
	maxExpansion = 256     // decompressed size of a section over its size in the file
	maxNote      = 1 << 20
)

// elfFile is one open ELF file. debug/elf is not hardened against hostile
// files: every call of it happens in contain, and sizes are checked here
// before a section is read.
type elfFile struct {
	path     string
	f        *elf.File
	r        io.ReaderAt
	size     int64
	closer   io.Closer
	segments []segment // PT_LOAD in file order
	buildID  string
}

// segment is a PT_LOAD program header.
type segment struct {
	off, vaddr, filesz, memsz uint64
	exec                      bool
}

// contain runs f and turns a panic into an error. debug/elf and debug/dwarf
// say that hostile files may make them panic.
func contain(path string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: damaged: %v", path, r)
		}
	}()
	return f()
}

// openELF opens an ELF file; it stays open until Close or until too many are.
func (o *openFiles) openELF(path string) (*elfFile, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	f := &lazyFile{set: o, path: path}
	e, err := newELF(path, f, st.Size())
	if err != nil {
		f.Close()
		return nil, err
	}
	e.closer = f
	return e, nil
}

func newELF(path string, r io.ReaderAt, size int64) (*elfFile, error) {
	e := &elfFile{path: path, r: r, size: size}
	err := contain(path, func() error {
		f, err := elf.NewFile(io.NewSectionReader(r, 0, size))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if len(f.Sections) > maxSections {
			return fmt.Errorf("%s: %d sections", path, len(f.Sections))
		}
		e.f = f
		for _, p := range f.Progs {
			if p.Type == elf.PT_LOAD {
				e.segments = append(e.segments, segment{p.Off, p.Vaddr, p.Filesz, p.Memsz, p.Flags&elf.PF_X != 0})
			}
		}
		e.buildID = e.readBuildID()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (e *elfFile) close() {
	if e != nil && e.closer != nil {
		e.closer.Close()
	}
}

var errNoSection = errors.New("no such section")

// section returns the bytes of a section, decompressed, or errNoSection.
func (e *elfFile) section(name string) ([]byte, error) {
	s := e.f.Section(name)
	if s == nil || s.Type == elf.SHT_NOBITS {
		return nil, errNoSection
	}
	return e.data(s)
}

// data returns the bytes of a section after checking its claims.
func (e *elfFile) data(s *elf.Section) (b []byte, err error) {
	if s.Type == elf.SHT_NOBITS {
		return nil, errNoSection
	}
	if s.Offset > uint64(e.size) || s.FileSize > uint64(e.size)-s.Offset {
		return nil, fmt.Errorf("%s: section %s at %#x, %d bytes, ends outside the file of %d", e.path, s.Name, s.Offset, s.FileSize, e.size)
	}
	if s.Size > maxSection || s.Size/maxExpansion > s.FileSize {
		return nil, fmt.Errorf("%s: section %s claims %d bytes out of %d", e.path, s.Name, s.Size, s.FileSize)
	}
	err = contain(e.path, func() error {
		b, err = s.Data()
		return err
	})
	return b, err
}

// text reads n bytes of the file at an offset, fewer at its end.
func (e *elfFile) text(off uint64, n int) []byte {
	if off >= uint64(e.size) {
		return nil
	}
	n = int(min(uint64(n), uint64(e.size)-off))
	b := make([]byte, n)
	got, _ := e.r.ReadAt(b, int64(off))
	return b[:got]
}

// vaddr turns a file offset into a link-time address. The kernel maps whole
// pages, so an offset just outside of a segment's bytes but in its first or
// last page belongs to it; executable segments come first, since two segments
// may share a page of the file.
func (e *elfFile) vaddr(off uint64) (uint64, bool) {
	for _, exec := range []bool{true, false} {
		for _, s := range e.segments {
			if s.exec == exec && off >= s.off&^(pageSize-1) && off < (s.off+s.filesz+pageSize-1)&^(pageSize-1) {
				return s.vaddr + (off - s.off), true
			}
		}
	}
	return 0, false
}

// offset is the inverse of vaddr.
func (e *elfFile) offset(vaddr uint64) (uint64, bool) {
	for _, s := range e.segments {
		if vaddr >= s.vaddr && vaddr-s.vaddr < s.memsz {
			return s.off + (vaddr - s.vaddr), true
		}
	}
	return 0, false
}

func (e *elfFile) is64() bool              { return e.f.Class == elf.ELFCLASS64 }
func (e *elfFile) order() binary.ByteOrder { return e.f.ByteOrder }

// readBuildID finds the NT_GNU_BUILD_ID note in the PT_NOTE segments, or in
// note sections where there are no segments (.ko and .o files).
func (e *elfFile) readBuildID() string {
	for _, p := range e.f.Progs {
		if p.Type == elf.PT_NOTE && p.Filesz <= maxNote {
			if id := buildIDNote(e.text(p.Off, int(p.Filesz)), e.order()); id != "" {
				return id
			}
		}
	}
	for _, s := range e.f.Sections {
		if s.Type == elf.SHT_NOTE && s.FileSize <= maxNote {
			if id := buildIDNote(e.text(s.Offset, int(s.FileSize)), e.order()); id != "" {
				return id
			}
		}
	}
	return ""
}

// buildIDNote looks through notes (ELF gABI, "Note Section") for the GNU
// build ID (type 3).
func buildIDNote(b []byte, order binary.ByteOrder) string {
	const header, gnuBuildID = 12, 3
	for len(b) >= header {
		namesz, descsz, typ := uint64(order.Uint32(b)), uint64(order.Uint32(b[4:])), order.Uint32(b[8:])
		name := align4(namesz)
		end := header + name + align4(descsz)
		if end > uint64(len(b)) {
			// The last descriptor need not be padded.
			if end = header + name + descsz; end > uint64(len(b)) {
				return ""
			}
		}
		if typ == gnuBuildID && namesz == 4 && string(b[header:header+4]) == "GNU\x00" && descsz > 0 {
			return hex.EncodeToString(b[header+name:][:descsz])
		}
		b = b[end:]
	}
	return ""
}

func align4(n uint64) uint64 { return (n + 3) &^ 3 }
