package image

import (
	"cmp"
	"slices"
)

// position is a line of source.
type position struct {
	file string
	line int
}

// Line returns the source file and line of a location, "" and 0 if unknown; a
// return address has the line of its call.
//
// The first question about an image answers it for every location interned
// in it so far, and for their functions (StartLine): its debug information
// is read once, unit by unit, and let go when another image is asked about.
// So intern all locations before asking for lines.
//
// A line inside an inlined function is the inlined code's, as in the line
// table; the chain of inlined calls is not expanded here.
func (s *Store) Line(l Loc) (file string, line int) {
	im := s.images[s.locs.keys[l].ref>>1]
	if int(l) >= im.described {
		s.describe(im)
	}
	p := s.lines[l]
	return p.file, p.line
}

// StartLine returns the line a function is declared in, 0 if unknown, and
// fills f.File and f.StartLine. Without a declaration in the debug
// information it is the line of the first instruction.
func (s *Store) StartLine(f *Function) int {
	if !f.lined {
		s.describe(f.Image)
		if !f.lined { // not the function of any Loc: a callee never sampled
			s.describeFunctions(f.Image, f.Image.unlined())
		}
	}
	return f.StartLine
}

// describe finds the lines of all locations of an image that have not been
// looked up, and of their functions.
func (s *Store) describe(im *Image) {
	if im.described == len(s.locs.keys) {
		return
	}
	s.lines = grow(s.lines, len(s.locs.keys))
	var wanted []lineQuery
	var functions []*Function
	for l := im.described; l < len(s.locs.keys); l++ {
		k := s.locs.keys[l]
		if k.ref>>1 != im.id {
			continue
		}
		f := s.Function(Loc(l))
		if f != nil && !f.lined {
			f.lined = true
			functions = append(functions, f)
		}
		offset := k.offset
		if k.ref&1 != 0 && offset > 0 {
			offset--
		}
		if addr, ok := im.Vaddr(offset); ok {
			wanted = append(wanted, lineQuery{addr: addr, at: &s.lines[l]})
		}
	}
	im.described = len(s.locs.keys)
	if len(wanted) > 0 {
		if d := s.dwarfOf(im); d != nil {
			im.note(d.from, d.lines(wanted))
		}
	}
	s.describeFunctions(im, functions)
}

// describeFunctions finds where functions of one image are declared.
func (s *Store) describeFunctions(im *Image, functions []*Function) {
	if len(functions) == 0 {
		return
	}
	for _, f := range functions {
		f.lined = true
	}
	d := s.dwarfOf(im)
	if d == nil {
		return
	}
	at := make([]position, len(functions))
	wanted := make([]lineQuery, 0, len(functions))
	for i, f := range functions {
		if addr, ok := im.Vaddr(f.Entry); ok {
			wanted = append(wanted, lineQuery{addr: addr, at: &at[i]})
		}
	}
	im.note(d.from, d.lines(wanted))
	im.note(d.from, d.declarations(wanted))
	for i, f := range functions {
		f.File, f.StartLine = at[i].file, at[i].line
	}
}

// unlined returns the functions that have been named but not described.
func (im *Image) unlined() (all []*Function) {
	for _, f := range im.functions {
		if !f.lined {
			all = append(all, f)
		}
	}
	return all
}

// lineQuery asks for the position of a link-time address.
type lineQuery struct {
	addr uint64
	at   *position
}

func sortQueries(qs []lineQuery) {
	slices.SortFunc(qs, func(a, b lineQuery) int { return cmp.Compare(a.addr, b.addr) })
}

// firstFrom returns the index of the first query of a sorted slice that asks
// for addr or a higher address.
func firstFrom(qs []lineQuery, addr uint64) int {
	i, _ := slices.BinarySearchFunc(qs, addr, func(q lineQuery, a uint64) int { return cmp.Compare(q.addr, a) })
	return i
}

// within returns the queries of a sorted slice with addresses in [lo, hi).
func within(qs []lineQuery, lo, hi uint64) []lineQuery {
	i := firstFrom(qs, lo)
	j := i
	for j < len(qs) && qs[j].addr < hi {
		j++
	}
	return qs[i:j]
}

// Vaddr turns an offset of the image into the link-time address of its ELF
// file, which unwind tables and debug information speak of.
func (im *Image) Vaddr(offset uint64) (uint64, bool) {
	im.load()
	switch {
	case im.code() == nil:
		return 0, false
	case im.Kind == Kernel:
		return offset - im.move, true
	}
	return im.code().vaddr(offset)
}

// FileOffset is the inverse of Vaddr.
func (im *Image) FileOffset(vaddr uint64) (uint64, bool) {
	im.load()
	switch {
	case im.code() == nil:
		return 0, false
	case im.Kind == Kernel:
		return vaddr + im.move, true
	}
	return im.code().offset(vaddr)
}

// code is the file whose program headers place the image: the one with the
// code, else its debug file, which has a copy of them.
func (im *Image) code() *elfFile {
	if im.file != nil {
		return im.file
	}
	return im.debug
}
