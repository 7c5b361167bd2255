package debuginfo

// splitFiles are the files that hold the split units of a File, by name.
type splitFiles struct {
	pkg     *pkg
	pkgDone bool
	dwo     map[string]*File
}

// withCode returns the unit that has the functions of u: u itself, or the
// split unit (DWARF 5, section 3.1.3; before that GNU's extension) of the
// skeleton u, if it is found.
func (u *unit) withCode() *unit {
	if u.dwoName == "" {
		return u
	}
	if !u.splitDone {
		u.splitDone = true
		u.splitUnit = u.findSplit()
	}
	if u.splitUnit == nil {
		return u
	}
	return u.splitUnit
}

func (u *unit) findSplit() *unit {
	f := u.file
	if f.src.Split == nil {
		return nil
	}
	if !f.split.pkgDone {
		f.split.pkgDone = true
		f.split.pkg = f.openPackage()
	}
	if p := f.split.pkg; p != nil {
		if s := p.unit(u.dwoID); s != nil {
			s.adopt(u)
			return s
		}
	}
	d, ok := f.split.dwo[u.dwoName]
	if !ok {
		d = f.openSplit(u.compDir, u.dwoName)
		if f.split.dwo == nil {
			f.split.dwo = map[string]*File{}
		}
		f.split.dwo[u.dwoName] = d
	}
	if d == nil {
		return nil
	}
	for off := uint64(0); off < d.sections[secInfo].size() && f.spend(1); {
		s, ok := d.readHeader(secInfo, off, contribution{})
		if s == nil {
			return nil
		}
		off = s.end
		if ok && s.typ != unitType && s.typ != unitSplitType && s.readRoot() && s.dwoID == u.dwoID {
			s.adopt(u)
			return s
		}
	}
	return nil
}

// openSplit opens a split file or a package, nil if there is none.
func (f *File) openSplit(dir, name string) *File {
	src := f.src.Split(dir, name)
	if src == nil {
		return nil
	}
	src.Lowest, src.BigEndian = f.src.Lowest, f.src.BigEndian
	d, err := open(*src, ".dwo", f.budget)
	if err != nil {
		return nil
	}
	return d
}

// adopt gives a split unit what its skeleton keeps.
func (u *unit) adopt(skeleton *unit) {
	u.addrFile, u.addrBase = skeleton.file, skeleton.addrBase
	u.lineFile, u.lines = skeleton.file, skeleton.lines
	u.compDir, u.low = skeleton.compDir, skeleton.low
	if u.version < 5 {
		u.rangesFile, u.rangesBase = skeleton.file, skeleton.rangesBase
	}
}

// pkg is a package of split units (DWARF 5, section 7.3.5).
type pkg struct {
	file  *File
	units map[uint64]contribution
}

func (f *File) openPackage() *pkg {
	d := f.openSplit("", "")
	if d == nil {
		return nil
	}
	// Only these two have no ".dwo" in their names.
	s, err := d.src.Section(".debug_cu_index")
	if err != nil {
		return nil
	}
	d.sections[secCUIndex] = s
	p := &pkg{file: d, units: map[uint64]contribution{}}
	d.grow(secCUIndex, 0, int(min(s.size(), 1<<28)), p.readIndex)
	return p
}

// unit returns the split unit with an ID.
func (p *pkg) unit(id uint64) *unit {
	at, ok := p.units[id]
	if !ok {
		return nil
	}
	u, ok := p.file.readHeader(secInfo, at[secInfo], at)
	if u == nil || !ok || !u.readRoot() {
		return nil
	}
	return u
}

// readIndex reads the index of units: a hash table of IDs, and a row of
// offsets for each (DWARF 5, section 7.3.5.3).
func (p *pkg) readIndex(c *cursor) bool {
	version := c.u32()
	if version == 5 || version>>16 == 5 { // the version has 2 bytes and padding
		version = 5
	} else if version != 2 {
		return false
	}
	columns, units, slots := uint64(c.u32()), uint64(c.u32()), uint64(c.u32())
	if left := uint64(c.left()); slots > left/12 || columns == 0 || columns > 16 || units > left/(4*columns) {
		return false
	}
	ids, rows := make([]uint64, slots), make([]uint64, slots)
	for i := range ids {
		ids[i] = c.uint(8)
	}
	for i := range rows {
		rows[i] = uint64(c.u32())
	}
	names := make([]int, columns)
	for i := range names {
		names[i] = packageColumn(version, c.u32())
	}
	table := make([]contribution, units+1)
	for i := uint64(1); i <= units; i++ {
		for _, n := range names {
			if off := uint64(c.u32()); n >= 0 {
				table[i][n] = off
			}
		}
	}
	for i, r := range rows {
		if r > 0 && r <= units {
			p.units[ids[i]] = table[r]
		}
	}
	return !c.bad
}

// packageColumn is the section a column of the index is about, -1 if it is of
// no use here. Version 2 is GNU's (gcc.gnu.org/wiki/DebugFissionDWP).
func packageColumn(version, id uint32) int {
	switch id {
	case 1:
		return secInfo
	case 3:
		return secAbbrev
	case 4:
		return secLine
	case 6:
		return secStrOffsets
	case 8:
		if version == 5 {
			return secRnglists
		}
	}
	return -1
}
