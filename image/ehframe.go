package image

import (
	"encoding/binary"
	"fmt"
)

// Pointer encodings of .eh_frame (LSB Core, "DWARF Extensions").
const (
	pcrelSdata4   = 0x1b
	datarelSdata4 = 0x3b
	udata4        = 0x03
)

// unwindFunctions returns the functions that a file's unwind tables know, as
// symbols without name at file offsets: what is left of a stripped file. The
// starts are in the search table of .eh_frame_hdr, the lengths in the FDEs.
func (e *elfFile) unwindFunctions() ([]symbol, error) {
	hdr, err := e.section(".eh_frame_hdr")
	if err != nil {
		return nil, err
	}
	frames, err := e.section(".eh_frame")
	if err != nil {
		return nil, err
	}
	// Every linker writes these encodings; others would be news.
	const header, entry = 12, 8
	if len(hdr) < header || hdr[0] != 1 || hdr[1] != pcrelSdata4 || hdr[2] != udata4 || hdr[3] != datarelSdata4 {
		return nil, errNoSection
	}
	order := e.order()
	base, framesAt := e.f.Section(".eh_frame_hdr").Addr, e.f.Section(".eh_frame").Addr
	n := uint64(order.Uint32(hdr[8:]))
	table := hdr[header:]
	if n > uint64(len(table)/entry) {
		return nil, fmt.Errorf("%s: .eh_frame_hdr claims %d entries in %d bytes", e.path, n, len(table))
	}
	all := make([]symbol, 0, n)
	for ; n > 0; n-- {
		start := base + uint64(int64(int32(order.Uint32(table))))
		fde := base + uint64(int64(int32(order.Uint32(table[4:])))) - framesAt
		table = table[entry:]
		off, ok := e.offset(start)
		if size := fdeLength(frames, fde, order); ok && off+size >= off {
			all = append(all, symbol{start: off, end: off + size})
		}
	}
	return all, nil
}

// fdeLength returns how many bytes of code an FDE describes, 0 if it cannot
// be told.
func fdeLength(frames []byte, fde uint64, order binary.ByteOrder) uint64 {
	const idAt, beginAt = 4, 8
	if fde > uint64(len(frames)) || uint64(len(frames))-fde < beginAt+16 {
		return 0
	}
	b := frames[fde:]
	cie := fde + idAt - uint64(order.Uint32(b[idAt:])) // wraps when damaged
	switch cieEncoding(frames, cie) & 0x0f {
	case 0x0, 0x4, 0xc:
		return order.Uint64(b[beginAt+8:])
	case 0x3, 0xb:
		return uint64(order.Uint32(b[beginAt+4:]))
	}
	return 0
}

// cieEncoding returns the encoding of addresses in the FDEs of a CIE, the
// augmentation "R"; 0 (absolute) if it has none; 0xff if it cannot be read.
func cieEncoding(frames []byte, cie uint64) byte {
	const bad = 0xff
	if cie > uint64(len(frames)) || uint64(len(frames))-cie < 16 {
		return bad
	}
	b := frames[cie+8:]
	version, augmentation := b[0], cString(b[1:])
	b = b[min(len(b), 2+len(augmentation)):]
	if augmentation == "" {
		return 0
	}
	if augmentation[0] != 'z' {
		return bad
	}
	skip := 2 // code and data alignment
	if version == 1 {
		b = skipLEB(b, skip)
		b = b[min(len(b), 1):]
	} else {
		b = skipLEB(b, skip+1)
	}
	b = skipLEB(b, 1) // length of the augmentation data
	for _, c := range augmentation[1:] {
		switch {
		case len(b) == 0:
			return bad
		case c == 'R':
			return b[0]
		case c == 'L':
			b = b[1:]
		case c == 'P' && b[0]&0x0f == 0x0b || c == 'P' && b[0]&0x0f == 0x03:
			b = b[min(len(b), 5):]
		case c == 'P':
			b = b[min(len(b), 9):]
		case c == 'S' || c == 'B':
		default:
			return bad
		}
	}
	return 0
}

// skipLEB skips n LEB128 numbers.
func skipLEB(b []byte, n int) []byte {
	for ; n > 0; n-- {
		for len(b) > 0 && b[0]&0x80 != 0 {
			b = b[1:]
		}
		b = b[min(len(b), 1):]
	}
	return b
}

// unwound returns a table of the functions known only from unwind tables:
// those that begin outside of every symbol, cut where a symbol begins.
func (im *Image) unwound() *symtab {
	if im.unwoundDone || im.file == nil || im.Kind == Kernel {
		return im.unnamed
	}
	im.unwoundDone = true
	all, err := im.file.unwindFunctions()
	im.note(im.file, err)
	var b symtabBuilder
	for _, y := range all {
		if im.symbols == nil || im.symbols.find(y.start) < 0 {
			y.end = im.symbols.cut(y.start, y.end)
			b.add(y)
		}
	}
	im.unnamed = b.finish()
	return im.unnamed
}
