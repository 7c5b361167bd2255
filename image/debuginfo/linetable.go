package debuginfo

import "strings"

// lineTable is the header of a line program (DWARF 5, section 6.2.4). Paths
// are put together when asked for.
type lineTable struct {
	f       *File
	version uint16
	compDir string
	dirs    []value
	files   []lineFile
	paths   map[uint64]string
	unit    *unit // for the forms of strings

	minInst, maxOps uint8
	lineBase        int8
	lineRange       uint8
	opcodeBase      uint8
	argCounts       []uint8
	addrSize        int
	program         uint64 // offset in .debug_line
	end             uint64
	ran             bool
}

type lineFile struct {
	name value
	dir  uint64
}

// maxFiles bounds the files and directories of a table.
const maxFiles = 1 << 20

// lineTable returns the table of a unit, nil if it has none or a damaged one.
func (u *unit) lineTable() *lineTable {
	if u.lines == 0 {
		return nil
	}
	f := u.lineFile
	t, ok := f.lines[u.lines]
	if !ok {
		t = &lineTable{f: f, compDir: u.compDir, unit: u}
		if !f.grow(secLine, u.lines-1, 4<<10, func(c *cursor) bool { return t.read(c, u) }) {
			t = nil
		}
		f.lines[u.lines] = t
	}
	return t
}

func (t *lineTable) read(c *cursor, u *unit) bool {
	n, word := c.length()
	start := u.lines - 1 + uint64(c.off)
	if size := t.f.sections[secLine].size(); c.bad || n > size-min(start, size) {
		return false
	}
	t.end = start + n
	e := encoding{version: c.u16(), addrSize: u.addrSize, word: uint8(word), big: u.big}
	if t.version = e.version; t.version < 2 || t.version > 5 {
		return false
	}
	if t.version >= 5 {
		e.addrSize = c.u8()
		c.u8() // size of segment selectors
	}
	t.addrSize = int(e.addrSize)
	header := c.uint(word)
	t.program = u.lines - 1 + uint64(c.off) + header
	t.minInst, t.maxOps = c.u8(), 1
	if t.version >= 4 {
		t.maxOps = c.u8()
	}
	c.u8() // is_stmt by default
	t.lineBase, t.lineRange, t.opcodeBase = int8(c.u8()), c.u8(), c.u8()
	if c.bad || t.lineRange == 0 || t.opcodeBase == 0 || t.program > t.end || t.program < start {
		return false
	}
	t.argCounts = append([]uint8{0}, c.bytes(uint64(t.opcodeBase-1))...)
	t.dirs, t.files = t.dirs[:0], t.files[:0]
	if t.version >= 5 {
		return t.newFiles(c, e)
	}
	return t.oldFiles(c)
}

// oldFiles reads the tables of DWARF 2 to 4: directory 0 and file 0 are not
// in them.
func (t *lineTable) oldFiles(c *cursor) bool {
	text := func() (v value, ok bool) {
		v = c.value(attrSpec{form: formString}, encoding{})
		return v, len(v.text) > 0 && !c.bad
	}
	t.dirs = append(t.dirs, value{})
	for len(t.dirs) < maxFiles {
		v, ok := text()
		if !ok {
			break
		}
		t.dirs = append(t.dirs, v)
	}
	t.files = append(t.files, lineFile{})
	for len(t.files) < maxFiles && !c.bad {
		v, ok := text()
		if !ok {
			break
		}
		t.files = append(t.files, lineFile{v, c.uleb()})
		c.skipLEB() // time
		c.skipLEB() // length
	}
	return !c.bad
}

// newFiles reads the tables of DWARF 5.
func (t *lineTable) newFiles(c *cursor, e encoding) bool {
	t.unit = &unit{file: t.f, encoding: e, strBase: t.unit.strBase}
	ok := t.entries(c, e, func(name value, _ uint64) { t.dirs = append(t.dirs, name) })
	return ok && t.entries(c, e, func(name value, dir uint64) { t.files = append(t.files, lineFile{name, dir}) })
}

func (t *lineTable) entries(c *cursor, e encoding, add func(name value, dir uint64)) bool {
	const contentPath, contentDir = 1, 2
	format := make([]attrSpec, 0, 4)
	for range c.u8() {
		format = append(format, attrSpec{at: uint32(c.uleb()), form: uint32(c.uleb())})
	}
	n := c.uleb()
	for i := uint64(0); i < n && i < maxFiles; i++ {
		before := c.off
		var name value
		var dir uint64
		for _, s := range format {
			switch s.at {
			case contentPath:
				name = c.value(s, e)
			case contentDir:
				dir = c.value(s, e).u
			default:
				c.skipForm(s.form, e)
			}
		}
		if c.bad {
			return false
		}
		if c.off == before {
			return true // nothing to tell entries apart by
		}
		add(name, dir)
	}
	return !c.bad
}

// file returns the path of a file, "" if there is none: relative names belong
// to their directory, and that to the one compiled in.
func (t *lineTable) file(i uint64) string {
	if i >= uint64(len(t.files)) {
		return ""
	}
	if p, ok := t.paths[i]; ok {
		return p
	}
	name := t.unit.text(t.files[i].name)
	if name != "" && !strings.HasPrefix(name, "/") {
		dir := ""
		if d := t.files[i].dir; d < uint64(len(t.dirs)) {
			dir = t.unit.text(t.dirs[d])
		}
		name = joinPath(t.compDir, dir, name)
	}
	if t.paths == nil {
		t.paths = map[uint64]string{}
	}
	t.paths[i] = name
	t.f.spend(len(name))
	return name
}

func joinPath(base, dir, name string) string {
	if dir != "" {
		name = strings.TrimSuffix(dir, "/") + "/" + name
	}
	if base != "" && base != "." && !strings.HasPrefix(name, "/") {
		name = strings.TrimSuffix(base, "/") + "/" + name
	}
	return name
}
