package debuginfo

// encoding is what the sizes of forms depend on.
type encoding struct {
	version  uint16
	addrSize uint8
	word     uint8 // size of offsets: 4 or 8
	big      bool
}

type attrSpec struct {
	at, form uint32
	implicit int64
}

// kind says what an entry is to a search for code.
type kind uint8

const (
	other     kind = iota
	root           // a unit
	container      // may hold functions: a namespace
	typ            // may hold functions, but compilers define them outside: a class
	function
	inlined
	block
)

// abbrev is how entries of one code look (DWARF 5, section 7.5.3).
type abbrev struct {
	tag      uint32
	kind     kind
	children bool
	hasCode  bool // has an address or ranges
	attrs    []attrSpec
	// fixed is the size of the attributes if none varies, else -1.
	fixed int
	// sibling is where in the attributes the sibling's offset is, if its form
	// is ref4 and all before it are of fixed size, else -1.
	sibling int
}

// abbrevTable has the abbreviations of a unit; compilers number them from 1.
type abbrevTable struct {
	dense  []abbrev
	sparse map[uint64]*abbrev
}

func (t *abbrevTable) get(code uint64) *abbrev {
	if code-1 < uint64(len(t.dense)) {
		return &t.dense[code-1]
	}
	return t.sparse[code]
}

// maxAttrs bounds the attributes of all tables a File holds at a time.
const maxAttrs = 1 << 20

type abbrevKey struct {
	off uint64
	encoding
}

// abbrevs returns the table at an offset, nil if it is damaged.
func (f *File) abbrevs(off uint64, e encoding) *abbrevTable {
	key := abbrevKey{off, e}
	if t, ok := f.tables[key]; ok {
		return t
	}
	t := &abbrevTable{}
	attrs := 0
	ok := f.grow(secAbbrev, off, 1<<12, func(c *cursor) bool {
		*t, attrs = abbrevTable{}, 0
		for {
			code := c.uleb()
			if code == 0 || c.bad {
				return !c.bad
			}
			a := readAbbrev(c, e)
			attrs += len(a.attrs) + 1
			switch {
			case c.bad:
				return false
			case code == uint64(len(t.dense))+1 && t.sparse == nil:
				t.dense = append(t.dense, a)
			case t.sparse == nil:
				t.sparse = map[uint64]*abbrev{}
				fallthrough
			default:
				if t.sparse[code] == nil {
					t.sparse[code] = &a
				}
			}
		}
	})
	if !ok {
		t = nil
	}
	if f.attrs += attrs; f.tables == nil || f.attrs > maxAttrs {
		f.tables, f.attrs = map[abbrevKey]*abbrevTable{}, attrs
	}
	f.tables[key] = t
	return t
}

// firstAbbrev returns the abbreviation of one code without reading the whole
// table: that of a unit's first entry comes first.
func (f *File) firstAbbrev(off, code uint64, e encoding) (a abbrev, ok bool) {
	ok = f.grow(secAbbrev, off, 1<<10, func(c *cursor) bool {
		for {
			got := c.uleb()
			if got == 0 || c.bad {
				return false
			}
			if a = readAbbrev(c, e); got == code {
				return !c.bad
			}
		}
	})
	return a, ok
}

func readAbbrev(c *cursor, e encoding) (a abbrev) {
	a.tag = uint32(c.uleb())
	a.children = c.u8() != 0
	a.kind = kindOf(a.tag)
	a.sibling = -1
	for {
		s := attrSpec{at: uint32(c.uleb()), form: uint32(c.uleb())}
		if s.form == formImplicit {
			s.implicit = c.sleb()
		}
		if s.at == 0 && s.form == 0 || c.bad {
			break
		}
		switch s.at {
		case attrLowPC, attrRanges:
			a.hasCode = true
		case attrSibling:
			if s.form == formRef4 {
				a.sibling = a.fixed
			}
		}
		a.attrs = append(a.attrs, s)
		if n := e.formSize(s.form); n < 0 {
			a.fixed = -1
		} else if a.fixed >= 0 {
			a.fixed += n
		}
	}
	return a
}

func kindOf(tag uint32) kind {
	switch tag {
	case tagCompileUnit, tagPartialUnit, tagTypeUnit, tagSkeletonUnit:
		return root
	case tagNamespace, tagModule:
		return container
	case tagClass, tagStructure, tagUnion, tagEnumeration, tagInterface:
		return typ
	case tagSubprogram:
		return function
	case tagInlined:
		return inlined
	case tagLexicalBlock, tagTryBlock, tagCatchBlock:
		return block
	}
	return other
}
