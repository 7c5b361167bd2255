package debuginfo

import (
	"cmp"
	"slices"
)

// unit is a unit of .debug_info or .debug_types.
type unit struct {
	encoding
	file    *File
	section int
	off     uint64 // of its header in the section
	end     uint64
	die     uint64 // of its first entry
	abbrev  uint64
	typ     uint8

	lang         uint64
	compDir      string
	lines        uint64 // offset of its line program plus one, 0 if none
	low          uint64
	ranges       [][2]uint64
	dwoName      string
	dwoID        uint64
	strBase      uint64
	addrBase     uint64
	rnglistsBase uint64
	rangesBase   uint64 // GNU: of a split unit's ranges
	lineBase     uint64 // of its contribution in a package
	rangesFile   *File
	addrFile     *File
	lineFile     *File
	data         []byte // of the section from off to end, while held
	splitUnit    *unit
	splitDone    bool
}

type typeAt struct {
	u   *unit
	die uint64
}

// contribution is where the parts of a unit begin in the sections of a
// package file.
type contribution [sections]uint64

// readUnits walks the unit headers of a section (DWARF 5, section 7.5.1) and
// reads the first entry of each.
func (f *File) readUnits(section int) {
	s := &f.sections[section]
	for off := uint64(0); off < s.size() && f.spend(1); {
		u, ok := f.readHeader(section, off, contribution{})
		if u == nil {
			return
		}
		off = u.end
		if ok && (u.typ == unitType || u.typ == unitSplitType || u.readRoot()) {
			f.units = append(f.units, u)
		}
	}
}

// readHeader reads the header of a unit. The unit is nil if not even its end
// is known; ok says that it can be read.
func (f *File) readHeader(section int, off uint64, at contribution) (u *unit, ok bool) {
	s := &f.sections[section]
	const longest = 4 + 8 + 2 + 1 + 1 + 8 + 8 + 8
	c := cursor{b: s.from(off, longest), big: f.src.BigEndian}
	n, word := c.length()
	start := off + uint64(c.off)
	if c.bad || n > s.size()-min(start, s.size()) || n == 0 {
		return nil, false
	}
	u = &unit{file: f, section: section, off: off, end: start + n, rangesFile: f, addrFile: f, lineFile: f}
	u.big, u.word, u.version = f.src.BigEndian, uint8(word), c.u16()
	if u.version >= 5 {
		u.typ, u.addrSize = c.u8(), c.u8()
		u.abbrev = c.uint(word)
	} else {
		u.abbrev, u.addrSize = c.uint(word), c.u8()
		if section == secTypes {
			u.typ = unitType
		}
	}
	var signature, die uint64
	switch u.typ {
	case unitSkeleton, unitSplit:
		u.dwoID = c.uint(8)
	case unitType, unitSplitType:
		signature, die = c.uint(8), c.uint(word)
	}
	u.die = off + uint64(c.off)
	if c.bad || u.version < 2 || u.version > 5 || u.die >= u.end || u.addrSize < 2 || u.addrSize > 8 || u.addrSize&(u.addrSize-1) != 0 {
		return u, false
	}
	if die > 0 && die < u.end-u.off {
		if f.typed == nil {
			f.typed = map[uint64]typeAt{}
		}
		f.typed[signature] = typeAt{u, u.off + die}
	}
	u.abbrev += at[secAbbrev]
	u.lineBase, u.strBase, u.rnglistsBase = at[secLine], at[secStrOffsets], at[secRnglists]
	return u, true
}

// readRoot reads the first entry.
func (u *unit) readRoot() bool {
	f := u.file
	size := int(min(u.end-u.die, 1<<30))
	return f.grow(u.section, u.die, min(size, 256), func(c *cursor) bool {
		c.b = c.b[:min(len(c.b), size)]
		code := c.uleb()
		a, ok := f.firstAbbrev(u.abbrev, code, u.encoding)
		if c.bad || !ok || a.kind != root {
			return false
		}
		vs := make([]value, len(a.attrs))
		for i, s := range a.attrs {
			vs[i] = c.value(s, u.encoding)
		}
		if c.bad {
			return false
		}
		u.setRoot(a.attrs, vs)
		return true
	})
}

// setRoot takes a unit's attributes; first the bases others are relative to.
func (u *unit) setRoot(attrs []attrSpec, vs []value) {
	if u.version >= 5 && (u.typ == unitSplit || u.typ == unitSplitType) {
		// Without a base attribute they follow the header of the contribution.
		u.strBase += 2 * uint64(u.word)
		u.rnglistsBase += 4 + 2*uint64(u.word)
	}
	var low, high, ranges, name value
	rangesBase := uint64(0)
	for i, s := range attrs {
		v := vs[i]
		switch s.at {
		case attrStrOffsetsBase:
			u.strBase, _ = v.offset()
		case attrAddrBase, attrGNUAddrBase:
			u.addrBase, _ = v.offset()
		case attrRnglistsBase:
			u.rnglistsBase, _ = v.offset()
		case attrGNURangesBase:
			rangesBase, _ = v.offset()
		case attrGNUDwoID:
			u.dwoID = v.u
		case attrLanguage:
			u.lang, _ = v.constant()
		case attrStmtList:
			if off, ok := v.offset(); ok && off < 1<<62 {
				u.lines = off + u.lineBase + 1
			}
		case attrLowPC:
			low = v
		case attrHighPC:
			high = v
		case attrRanges:
			ranges = v
		case attrDwoName, attrGNUDwoName:
			name = v
		case attrCompDir:
			defer func() { u.compDir = u.text(v) }()
		}
	}
	u.dwoName = u.text(name)
	u.low, _ = u.address(low)
	u.eachRange(low, high, ranges, func(lo, hi uint64) {
		if f := u.file; f.unitRanges > 0 {
			f.unitRanges--
			u.ranges = append(u.ranges, [2]uint64{lo, hi})
		}
	})
	u.rangesBase = rangesBase // not for the skeleton's own ranges
}

// maxHeld bounds the content of units that stays in memory.
const maxHeld = 32 << 20

// content returns the bytes of the unit from its header on.
func (u *unit) content() []byte {
	s := &u.file.sections[u.section]
	if s.R == nil {
		return s.Data[u.off:u.end]
	}
	if u.data == nil {
		if u.file.held += int(u.end - u.off); u.file.held > maxHeld {
			for _, o := range u.file.units {
				o.data = nil
			}
			u.file.held = int(u.end - u.off)
		}
		u.data = s.from(u.off, int(u.end-u.off))
	}
	return u.data
}

// at returns a cursor at an offset of the section, bad if outside the unit's
// entries.
func (u *unit) at(off uint64) cursor {
	c := cursor{b: u.content(), big: u.big}
	if off < u.die || off >= u.end {
		c.bad = true
		return c
	}
	c.skip(off - u.off)
	return c
}

// unitAt returns the unit of .debug_info an offset lies in, nil if none.
func (f *File) unitAt(off uint64) *unit {
	us := f.units[:f.infoEnd]
	i, found := slices.BinarySearchFunc(us, off, func(u *unit, off uint64) int { return cmp.Compare(u.off, off) })
	if !found {
		i--
	}
	if i < 0 || off >= us[i].end {
		return nil
	}
	return us[i]
}
