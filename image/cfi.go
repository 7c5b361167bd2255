package image

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// CFI is the call frame information of an image: the sections an unwinder
// reads, as they are. All addresses are link-time ones.
type CFI struct {
	BigEndian bool
	AddrSize  int // bytes of an address, 4 or 8
	// EhFrameHdr and EhFrame are .eh_frame_hdr and .eh_frame; DebugFrame is
	// .debug_frame, of the file or else of its separate debug file. Empty if
	// there is none.
	EhFrameHdr, EhFrame, DebugFrame CFISection
	// Go says that the Go toolchain made the file.
	Go bool
	// TextBase and DataBase are the starts of .text and .got, which pointers
	// may count from.
	TextBase, DataBase uint64
}

// CFISection is the content of a section and the address of its first byte.
type CFISection struct {
	Data []byte
	Addr uint64
}

// CFI reads the image's call frame information. Without a file there is none.
// A section that cannot be read is left out, and what is wrong with it is
// among the Store's problems, like that of other sections.
func (im *Image) CFI() CFI {
	im.load()
	var c CFI
	for _, e := range []*elfFile{im.file, im.debug} {
		if e == nil {
			continue
		}
		if c.AddrSize == 0 {
			c.BigEndian, c.AddrSize = e.f.ByteOrder == binary.BigEndian, 8
			if e.f.Class == elf.ELFCLASS32 {
				c.AddrSize = 4
			}
		}
		c.Go = c.Go || e.f.Section(".note.go.buildid") != nil || e.f.Section(".gopclntab") != nil
		c.TextBase = max(c.TextBase, e.sectionAddr(".text"))
		c.DataBase = max(c.DataBase, e.sectionAddr(".got"))
		im.cfiSection(e, ".eh_frame_hdr", &c.EhFrameHdr)
		im.cfiSection(e, ".eh_frame", &c.EhFrame)
		im.cfiSection(e, ".debug_frame", &c.DebugFrame)
	}
	return c
}

// cfiSection reads a section that has not been found yet.
func (im *Image) cfiSection(e *elfFile, name string, to *CFISection) {
	if to.Data != nil {
		return
	}
	data, err := e.section(name)
	if errors.Is(err, errNoSection) {
		data, err = e.zsection(".z" + name[1:])
	}
	im.note(e, err)
	if err == nil && len(data) > 0 {
		*to = CFISection{data, e.sectionAddr(name)}
	}
}

func (e *elfFile) sectionAddr(name string) uint64 {
	if s := e.f.Section(name); s != nil {
		return s.Addr
	}
	return 0
}

// zsection decompresses a section as GNU tools wrote them before ELF had
// SHF_COMPRESSED: "ZLIB", the size in big-endian order, a zlib stream.
func (e *elfFile) zsection(name string) ([]byte, error) {
	const header = 12
	raw, err := e.section(name)
	if err != nil {
		return nil, err
	}
	if len(raw) < header || string(raw[:4]) != "ZLIB" {
		return nil, fmt.Errorf("%s: section %s is not compressed", e.path, name)
	}
	size := binary.BigEndian.Uint64(raw[4:])
	if size > maxSection || size/maxExpansion > uint64(len(raw)) {
		return nil, fmt.Errorf("%s: section %s claims %d bytes out of %d", e.path, name, size, len(raw))
	}
	z, err := zlib.NewReader(bytes.NewReader(raw[header:]))
	if err != nil {
		return nil, fmt.Errorf("%s: section %s: %w", e.path, name, err)
	}
	b, err := io.ReadAll(io.LimitReader(z, int64(size)))
	if err != nil {
		return nil, fmt.Errorf("%s: section %s: %w", e.path, name, err)
	}
	return b, nil
}

// ReadVaddr fills p with bytes of the file's read-only segments from a
// link-time address on, and returns how many there were.
func (im *Image) ReadVaddr(p []byte, vaddr uint64) int {
	im.load()
	if im.file == nil {
		return 0
	}
	for _, h := range im.file.f.Progs {
		if h.Type == elf.PT_LOAD && h.Flags&elf.PF_W == 0 && vaddr >= h.Vaddr && vaddr-h.Vaddr < h.Filesz {
			n := min(uint64(len(p)), h.Filesz-(vaddr-h.Vaddr))
			got, _ := im.file.r.ReadAt(p[:n], int64(h.Off+(vaddr-h.Vaddr)))
			return got
		}
	}
	return 0
}

// X86 reports whether the image's file is of the x86-64 instruction set.
func (im *Image) X86() bool {
	im.load()
	return im.file != nil && im.file.f.Machine == elf.EM_X86_64
}
