package image

import "github.com/perfcorrect/perfcorrect/image/debuginfo"

// position is a line of source.
type position struct {
	file string
	line int
}

// Line returns the source file and line of a location, "" and 0 if unknown; a
// return address has the line of its call.
//
// The first question about an image answers it for every location interned
// in it so far, and for their functions (StartLine) and inlined calls
// (Frames): its debug information is read once and let go. So intern all
// locations before asking.
//
// A line inside an inlined function is the inlined code's, as in the line
// table.
func (s *Store) Line(l Loc) (file string, line int) {
	s.describeLoc(l)
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
			s.describeFunctions(f.Image, f.Image.unlined(), nil)
		}
	}
	return f.StartLine
}

func (s *Store) describeLoc(l Loc) {
	if im := s.images[s.locs.keys[l].ref>>1]; int(l) >= im.described {
		s.describe(im)
	}
}

// describe finds the lines and inlined calls of all locations of an image
// that have not been looked up, and where their functions are declared.
func (s *Store) describe(im *Image) {
	if im.described == len(s.locs.keys) {
		return
	}
	s.lines = grow(s.lines, len(s.locs.keys))
	s.inlined = grow(s.inlined, len(s.locs.keys))
	var locs []addressed
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
		if im.jit != nil && f != nil {
			s.lines[l] = im.jit.position(f.Entry, offset)
			if f.StartLine == 0 {
				p := im.jit.position(f.Entry, f.Entry)
				f.File, f.StartLine = p.file, p.line
			}
		}
		if addr, ok := im.Vaddr(offset); ok {
			locs = append(locs, addressed{Loc(l), addr})
		}
	}
	im.described = len(s.locs.keys)
	s.describeFunctions(im, functions, locs)
}

// addressed is a location and its link-time address.
type addressed struct {
	loc  Loc
	addr uint64
}

// describeFunctions finds where functions of one image are declared, and the
// lines and inlined calls of locations in it.
func (s *Store) describeFunctions(im *Image, functions []*Function, locs []addressed) {
	if len(functions)+len(locs) == 0 {
		return
	}
	qs := make([]debuginfo.Query, 0, len(functions)+len(locs))
	for _, l := range locs {
		qs = append(qs, debuginfo.Query{Addr: l.addr})
	}
	for _, f := range functions {
		f.lined = true
		if addr, ok := im.Vaddr(f.Entry); ok {
			qs = append(qs, debuginfo.Query{Addr: addr})
		}
	}
	if d := im.dwarfOf(); d != nil {
		im.note(d.from, d.describe(qs))
	} else if !im.describeGo(qs) {
		return
	}
	a := answers(qs)
	for _, l := range locs {
		if q := a.at(l.addr); q != nil {
			s.lines[l.loc] = position{q.File, q.Line}
			s.inlined[l.loc] = q.Inlined
		}
	}
	for _, f := range functions {
		if addr, ok := im.Vaddr(f.Entry); ok {
			f.declare(a.at(addr))
		}
	}
}

// declare takes what is known of the address of a function's entry.
func (f *Function) declare(q *debuginfo.Query) {
	if q == nil {
		return
	}
	f.File, f.StartLine = q.File, q.Line
	if g := q.Function; g != nil && g.Line > 0 {
		f.StartLine = g.Line
		if g.File != "" {
			f.File = g.File
		}
	}
}

// answers are queries that were answered, sorted by address.
type answers []debuginfo.Query

func (a answers) at(addr uint64) *debuginfo.Query {
	lo, hi := 0, len(a)
	for lo < hi {
		if m := (lo + hi) / 2; a[m].Addr < addr {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == len(a) || a[lo].Addr != addr {
		return nil
	}
	return &a[lo]
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
