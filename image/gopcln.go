package image

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/perfcorrect/perfcorrect/image/debuginfo"
)

// goTable is the table a Go program keeps of its functions, for its own stack
// traces (runtime/symtab.go; cmd/link/internal/ld/pcln.go): names, lines and
// inlined calls, which stay when symbols and DWARF are stripped. The layout is
// that of Go 1.18 and 1.19, or of 1.20 and later.
type goTable struct {
	b     []byte // .gopclntab
	order binary.ByteOrder
	old   bool // Go 1.18, 1.19: no start lines
	quant uint64
	word  int

	names, cus, files, pcs, funcs []byte
	nfunc                         int
	text                          uint64 // what entries are relative to
	inline                        func(off uint32) []byte
}

const (
	goMagic118 = 0xfffffff0
	goMagic120 = 0xfffffff1

	goInlineIndex = 2 // PCDATA_InlTreeIndex
	goInlineTree  = 3 // FUNCDATA_InlTree
)

// goTable returns the table of a Go program, nil if the file has none that is
// known. It is not kept.
func (e *elfFile) goTable() (*goTable, error) {
	var name string
	var addr uint64
	for _, s := range e.f.Sections {
		if strings.HasSuffix(s.Name, ".gopclntab") {
			name, addr = s.Name, s.Addr
		}
	}
	if name == "" {
		return nil, errNoSection
	}
	b, err := e.section(name)
	if err != nil {
		return nil, err
	}
	t := &goTable{b: b, order: e.order()}
	if err := t.header(); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", e.path, name, err)
	}
	t.module(e, addr)
	return t, nil
}

// header reads pcHeader.
func (t *goTable) header() error {
	const fields = 8
	if len(t.b) < fields {
		return fmt.Errorf("%d bytes", len(t.b))
	}
	switch magic := t.order.Uint32(t.b); magic {
	case goMagic118:
		t.old = true
	case goMagic120:
	default:
		return fmt.Errorf("unknown magic number %#x", magic)
	}
	t.quant, t.word = uint64(t.b[6]), int(t.b[7])
	if t.word != 4 && t.word != 8 || t.quant == 0 || len(t.b) < fields+8*t.word {
		return fmt.Errorf("pointers of %d bytes, instructions of %d", t.word, t.quant)
	}
	field := func(i int) uint64 { return t.pointer(t.b[fields+i*t.word:]) }
	n := field(0)
	t.text = field(2)
	parts := []*[]byte{&t.names, &t.cus, &t.files, &t.pcs, &t.funcs}
	for i, p := range parts {
		off := field(3 + i)
		if off > uint64(len(t.b)) {
			return fmt.Errorf("part %d at %#x of %d bytes", i, off, len(t.b))
		}
		*p = t.b[off:]
	}
	if n > uint64(len(t.funcs)/8) {
		return fmt.Errorf("%d functions in %d bytes", n, len(t.funcs))
	}
	t.nfunc = int(n)
	return nil
}

func (t *goTable) pointer(b []byte) uint64 {
	if t.word == 4 {
		return uint64(t.order.Uint32(b))
	}
	return t.order.Uint64(b)
}

// goFunc is a function of the table; the content of _func is in b.
type goFunc struct {
	entry, end uint32 // relative to text
	b          []byte
}

func (t *goTable) function(i int) (f goFunc, ok bool) {
	const fixed = 40
	at := t.funcs[i*8:]
	if len(at) < 12 { // with the next one's entry, or the end of the last
		return f, false
	}
	off := t.order.Uint32(at[4:])
	if uint64(off) > uint64(len(t.funcs)) || len(t.funcs)-int(off) < fixed+4 {
		return f, false
	}
	f = goFunc{t.order.Uint32(at), t.order.Uint32(at[8:]), t.funcs[off:]}
	return f, f.entry < f.end
}

// field is number i of the 32-bit fields of a function.
func (t *goTable) field(f goFunc, i int) uint32 { return t.order.Uint32(f.b[i*4:]) }

func (t *goTable) name(off uint32) string {
	if uint64(off) >= uint64(len(t.names)) {
		return ""
	}
	return cString(t.names[off:min(len(t.names), int(off)+maxMangled)])
}

func (t *goTable) startLine(f goFunc) int {
	if t.old {
		return 0
	}
	return int(t.field(f, 9) & 0x7fffffff)
}

// lists returns where pcdata and funcdata of a function are.
func (t *goTable) lists(f goFunc) (pcdata, funcdata []byte) {
	fixed := 44
	if t.old {
		fixed = 40
	}
	np, nf := uint64(t.field(f, 7)), uint64(f.b[fixed-1])
	if np > uint64(len(f.b)) || uint64(len(f.b)-fixed) < 4*(np+nf) {
		return nil, nil
	}
	return f.b[fixed:][:4*np], f.b[fixed+int(4*np):][:4*nf]
}

// value looks a table of values by address up (runtime.pcvalue): -1 if none.
func (t *goTable) value(off, pc uint32) int32 {
	if off == 0 || uint64(off) >= uint64(len(t.pcs)) {
		return -1
	}
	b := t.pcs[off:]
	v, at := int32(-1), uint64(0)
	for first := true; ; first = false {
		delta, n := binary.Uvarint(b)
		if n <= 0 || delta == 0 && !first {
			return -1
		}
		b = b[n:]
		v += int32(uint32(delta)>>1) ^ -int32(delta&1)
		size, n := binary.Uvarint(b)
		if n <= 0 {
			return -1
		}
		b = b[n:]
		if at += size * t.quant; uint64(pc) < at {
			return v
		}
	}
}

// position is the file and line of an address relative to the entry.
func (t *goTable) position(f goFunc, pc uint32) (p position) {
	if line := t.value(t.field(f, 6), pc); line > 0 {
		p.line = int(line)
	}
	i := t.value(t.field(f, 5), pc)
	if cu := (uint64(t.field(f, 8)) + uint64(uint32(i))) * 4; i >= 0 && cu+4 <= uint64(len(t.cus)) {
		if off := t.order.Uint32(t.cus[cu:]); uint64(off) < uint64(len(t.files)) {
			p.file = cString(t.files[off:min(len(t.files), int(off)+maxMangled)])
		}
	}
	return p
}

// addSymbols adds all functions.
func (t *goTable) addSymbols(b *symtabBuilder, place func(uint64) (uint64, bool)) {
	for i := range t.nfunc {
		f, ok := t.function(i)
		if !ok {
			continue
		}
		start, ok := place(t.text + uint64(f.entry))
		if name := t.name(t.field(f, 1)); ok && name != "" {
			b.add(symbol{start: start, end: start + uint64(f.end-f.entry), name: name})
		}
	}
}

// addGoSymbols adds the functions of a stripped Go program.
func (e *elfFile) addGoSymbols(b *symtabBuilder, place func(uint64) (uint64, bool)) error {
	return contain(e.path, func() error {
		t, err := e.goTable()
		if err == nil {
			t.addSymbols(b, place)
		}
		return err
	})
}

// describeGo answers queries about a Go program without DWARF.
func (im *Image) describeGo(qs []debuginfo.Query) bool {
	if im.file == nil {
		return false
	}
	found := false
	im.note(im.file, contain(im.file.path, func() error {
		t, err := im.file.goTable()
		if found = err == nil; found {
			slices.SortFunc(qs, func(a, b debuginfo.Query) int { return cmp.Compare(a.Addr, b.Addr) })
			t.describe(qs)
		}
		return err
	}))
	return found
}

// describe answers the queries package debuginfo would.
func (t *goTable) describe(qs []debuginfo.Query) {
	known := map[debuginfo.Function]*debuginfo.Function{}
	function := func(name string, file string, line int) *debuginfo.Function {
		f := debuginfo.Function{Name: name, File: file, Line: line}
		if known[f] == nil {
			known[f] = &f
		}
		return known[f]
	}
	for i := range qs {
		f, ok := t.find(qs[i].Addr)
		if !ok {
			continue
		}
		pc := uint32(qs[i].Addr-t.text) - f.entry
		frames := t.inlined(f, pc)
		var call *debuginfo.Inlined
		for j := len(frames) - 2; j >= 0; j-- {
			in, at := frames[j], frames[j+1]
			call = &debuginfo.Inlined{Function: function(in.name, in.file, in.start), File: at.file, Line: at.line, Outer: call}
		}
		outer := frames[len(frames)-1]
		qs[i].File, qs[i].Line, qs[i].Inlined = frames[0].file, frames[0].line, call
		qs[i].Function = function(outer.name, outer.file, outer.start)
	}
}

// find returns the function that covers an address.
func (t *goTable) find(addr uint64) (f goFunc, ok bool) {
	rel := addr - t.text
	if addr < t.text || rel > 1<<32-1 {
		return f, false
	}
	lo, hi := 0, t.nfunc
	for lo < hi {
		if m := (lo + hi) / 2; uint64(t.order.Uint32(t.funcs[m*8:])) <= rel {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == 0 {
		return f, false
	}
	f, ok = t.function(lo - 1)
	return f, ok && rel < uint64(f.end)
}
