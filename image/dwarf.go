package image

import (
	"debug/dwarf"
	"fmt"
	"io"
)

// debugInfo is the DWARF of one file, held while lines of its image are asked
// for. debug/dwarf is not hardened: its calls are contained.
type debugInfo struct {
	from  *elfFile
	data  *dwarf.Data
	units []unit
}

// unit is a compilation unit and the link-time addresses of its code.
type unit struct {
	die    dwarf.Offset
	end    dwarf.Offset // of its entries
	ranges [][2]uint64
}

// openDebug is the DWARF a Store holds: that of one image.
type openDebug struct {
	im   *Image
	info *debugInfo
}

// dwarfOf returns the debug information of an image, nil if it has none.
func (s *Store) dwarfOf(im *Image) *debugInfo {
	if s.debug.im == im {
		return s.debug.info
	}
	s.debug = openDebug{im: im}
	for _, e := range []*elfFile{im.debug, im.file} {
		if e == nil || e.f.Section(".debug_info") == nil {
			continue
		}
		d, err := newDebugInfo(e)
		im.note(e, err)
		if err == nil {
			s.debug.info = d
			break
		}
	}
	return s.debug.info
}

func newDebugInfo(e *elfFile) (*debugInfo, error) {
	sections := map[string][]byte{}
	for _, name := range []string{"abbrev", "info", "line", "ranges", "str", "addr", "line_str", "rnglists", "str_offsets"} {
		b, err := e.section(".debug_" + name)
		if err != nil && err != errNoSection {
			return nil, err
		}
		sections[name] = b
	}
	d := &debugInfo{from: e}
	err := contain(e.path, func() error {
		data, err := dwarf.New(sections["abbrev"], nil, nil, sections["info"], sections["line"], nil, sections["ranges"], sections["str"])
		if err != nil {
			return fmt.Errorf("%s: %w", e.path, err)
		}
		for _, name := range []string{"addr", "line_str", "rnglists", "str_offsets"} {
			if err := data.AddSection(".debug_"+name, sections[name]); err != nil {
				return fmt.Errorf("%s: %w", e.path, err)
			}
		}
		d.data = data
		return d.findUnits(sections["info"])
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// findUnits walks the unit headers of .debug_info (DWARF 5, section 7.5.1)
// and reads the ranges of each unit's first entry. A unit that cannot be read
// is left out; the rest still counts.
func (d *debugInfo) findUnits(info []byte) error {
	order := d.from.order()
	r := d.data.Reader()
	for off := uint64(0); uint64(len(info))-off >= 12; {
		b := info[off:]
		length, word := uint64(order.Uint32(b)), uint64(4)
		if length == 0xffffffff {
			length, word = order.Uint64(b[4:]), 8
		}
		start := off + 4
		if word == 8 {
			start += 8
		}
		if length > uint64(len(info))-start || length < 7 {
			return nil
		}
		body := info[start : start+length]
		// version, [type], address size, offset of abbreviations
		header := 2 + 1 + word
		if order.Uint16(body) >= 5 {
			header++
			switch body[2] {
			case 0x04, 0x05: // skeleton, split: dwo_id
				header += 8
			case 0x02, 0x06: // type units hold no code
				header = length
			}
		}
		if header < length {
			d.addUnit(r, dwarf.Offset(start+header), dwarf.Offset(start+length))
		}
		off = start + length
	}
	return nil
}

func (d *debugInfo) addUnit(r *dwarf.Reader, die, end dwarf.Offset) {
	r.Seek(die)
	e, err := r.Next()
	if err != nil || e == nil || (e.Tag != dwarf.TagCompileUnit && e.Tag != dwarf.TagSkeletonUnit) {
		return
	}
	ranges, err := d.data.Ranges(e)
	if err != nil || len(ranges) == 0 {
		return
	}
	d.units = append(d.units, unit{die, end, ranges})
}

// lines fills the positions of addresses from the line tables of the units
// that cover them.
func (d *debugInfo) lines(qs []lineQuery) error {
	sortQueries(qs)
	done := map[any]bool{} // units may share a line program
	return contain(d.from.path, func() error {
		for _, u := range d.units {
			if !u.concerns(qs) {
				continue
			}
			r := d.data.Reader()
			r.Seek(u.die)
			cu, err := r.Next()
			if err != nil || cu == nil || done[cu.Val(dwarf.AttrStmtList)] {
				continue
			}
			done[cu.Val(dwarf.AttrStmtList)] = true
			lr, err := d.data.LineReader(cu)
			if err != nil || lr == nil {
				continue
			}
			fillLines(lr, qs)
		}
		return nil
	})
}

func (u *unit) concerns(qs []lineQuery) bool {
	for _, r := range u.ranges {
		if i := firstFrom(qs, r[0]); i < len(qs) && qs[i].addr < r[1] {
			return true
		}
	}
	return false
}

// fillLines runs a line program (DWARF 5, section 6.2): a row holds from its
// address up to the next row's in the same sequence, and addresses only grow
// within a sequence.
func fillLines(lr *dwarf.LineReader, qs []lineQuery) {
	var row, next dwarf.LineEntry
	open, i := false, 0
	for lr.Next(&next) == nil { // until io.EOF, or damage: what was read stands
		if !open {
			i = firstFrom(qs, next.Address)
		}
		for open && i < len(qs) && qs[i].addr < next.Address {
			if qs[i].addr >= row.Address && row.File != nil {
				*qs[i].at = position{row.File.Name, row.Line}
			}
			i++
		}
		row, open = next, !next.EndSequence
	}
}

// declarations fills positions of function entries with where the functions
// are declared; those without a declaration keep what they have.
func (d *debugInfo) declarations(qs []lineQuery) error {
	sortQueries(qs)
	return contain(d.from.path, func() error {
		for _, u := range d.units {
			if u.concerns(qs) {
				d.unitDeclarations(u, qs)
			}
		}
		return nil
	})
}

func (d *debugInfo) unitDeclarations(u unit, qs []lineQuery) {
	r := d.data.Reader()
	r.Seek(u.die)
	cu, err := r.Next()
	if err != nil || cu == nil || !cu.Children {
		return
	}
	var files []*dwarf.LineFile
	if lr, err := d.data.LineReader(cu); err == nil && lr != nil {
		// Files defined by the program itself are known only at its end.
		for e := new(dwarf.LineEntry); lr.Next(e) != io.EOF; {
			if len(lr.Files()) > 1 {
				break
			}
		}
		files = lr.Files()
	}
	for depth := 1; depth > 0; {
		e, err := r.Next()
		if err != nil || e == nil || e.Offset >= u.end {
			return
		}
		switch {
		case e.Tag == 0:
			depth--
		case e.Tag == dwarf.TagSubprogram:
			d.declare(e, u, files, qs)
			r.SkipChildren()
		case !e.Children:
		case containsFunctions(e.Tag):
			depth++
		default:
			r.SkipChildren()
		}
	}
}

func containsFunctions(tag dwarf.Tag) bool {
	switch tag {
	case dwarf.TagNamespace, dwarf.TagModule, dwarf.TagStructType, dwarf.TagClassType, dwarf.TagUnionType, dwarf.TagEnumerationType:
		return true
	}
	return false
}

// declare answers the queries that ask for the first byte of a subprogram or
// of one of its parts (GCC splits off cold ones).
func (d *debugInfo) declare(e *dwarf.Entry, u unit, files []*dwarf.LineFile, qs []lineQuery) {
	ranges, err := d.data.Ranges(e)
	if err != nil {
		return
	}
	for _, r := range ranges {
		for _, q := range within(qs, r[0], r[0]+1) {
			if p := d.declaration(e, u, files); p.line > 0 {
				if p.file == "" {
					p.file = q.at.file
				}
				*q.at = p
			}
		}
	}
}

// declaration follows a subprogram to its abstract instance and its
// specification (DWARF 5, sections 3.3.8.2 and 2.13.2) until one has a line.
func (d *debugInfo) declaration(e *dwarf.Entry, u unit, files []*dwarf.LineFile) (p position) {
	const maxHops = 8
	for range maxHops {
		if line, ok := e.Val(dwarf.AttrDeclLine).(int64); ok && p.line == 0 {
			p.line = int(line)
		}
		inUnit := e.Offset >= u.die && e.Offset < u.end
		if i, ok := e.Val(dwarf.AttrDeclFile).(int64); ok && inUnit && i >= 0 && int(i) < len(files) && files[i] != nil {
			p.file = files[i].Name
		}
		if p.line > 0 && p.file != "" {
			return p
		}
		next, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			if next, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset); !ok {
				return p
			}
		}
		r := d.data.Reader()
		r.Seek(next)
		var err error
		if e, err = r.Next(); err != nil || e == nil {
			return p
		}
	}
	return p
}
