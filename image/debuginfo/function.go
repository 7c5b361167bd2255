package debuginfo

// entry is an entry of a unit; u is nil if there is none.
type entry struct {
	u   *unit
	off uint64 // in the section
}

// reference finds what a reference refers to (DWARF 5, section 7.5.5.9).
func (u *unit) reference(v value) entry {
	switch v.form {
	case formRef1, formRef2, formRef4, formRef8, formRefUdata:
		if off := u.off + v.u; off > u.off && off < u.end {
			return entry{u, off}
		}
	case formRefAddr:
		if o := u.file.unitAt(v.u); o != nil {
			return entry{o, v.u}
		}
	case formGNURefAlt, formRefSup4, formRefSup8:
		if alt := u.file.alternate(); alt != nil {
			if o := alt.unitAt(v.u); o != nil {
				return entry{o, v.u}
			}
		}
	case formRefSig8:
		if t, ok := u.file.typed[v.u]; ok {
			return entry{t.u, t.die}
		}
	}
	return entry{}
}

// attributes reads those of an entry that each asks for, and returns its tag,
// 0 if it cannot be read.
func (e entry) attributes(each func(at uint32, v value)) (tag uint32) {
	table := e.u.file.abbrevs(e.u.abbrev, e.u.encoding)
	c := e.u.at(e.off)
	code := c.uleb()
	if table == nil || c.bad {
		return 0
	}
	a := table.get(code)
	if a == nil {
		return 0
	}
	start := c.off
	for _, s := range a.attrs {
		switch s.at {
		case attrName, attrLinkageName, attrMIPSLinkage, attrDeclFile, attrDeclLine, attrAbstractOrigin, attrSpecification, attrSignature:
			if v := c.value(s, e.u.encoding); !c.bad {
				each(s.at, v)
			}
		default:
			c.skipForm(s.form, e.u.encoding)
		}
		if c.bad {
			break
		}
	}
	e.u.file.spend(c.off - start + 1)
	return a.tag
}

// maxHops bounds the chain from an instance of a function to its declaration.
const maxHops = 8

// describe follows a function to its abstract instance and its specification
// (DWARF 5, sections 3.3.8.2 and 2.13.2), and takes of each property what
// comes first.
func (f *File) describe(e entry, scopes scopeQueries) *Function {
	if fn, ok := f.known[e]; ok {
		return fn
	}
	fn := &Function{}
	f.known[e] = fn
	var last entry // that has the name
	for range maxHops {
		var next entry
		e.attributes(func(at uint32, v value) {
			switch at {
			case attrName:
				if fn.Name == "" {
					fn.Name = e.u.text(v)
				}
			case attrLinkageName, attrMIPSLinkage:
				if fn.Linkage == "" {
					fn.Linkage = e.u.text(v)
				}
			case attrDeclLine:
				if line, ok := v.constant(); ok && fn.Line == 0 {
					fn.Line = int(line & 0x7fffffff)
				}
			case attrDeclFile:
				if i, ok := v.constant(); ok && fn.File == "" {
					if lines := e.u.lineTable(); lines != nil {
						fn.File = lines.file(i)
					}
				}
			case attrAbstractOrigin, attrSpecification:
				next = e.u.reference(v)
			}
		})
		last = e
		if next.u == nil || fn.Linkage != "" && fn.Name != "" && fn.Line > 0 && fn.File != "" {
			break
		}
		e = next
	}
	if fn.Linkage == "" && fn.Name != "" && last.u.scoped() {
		scopes.ask(last, fn)
	}
	f.spend(len(fn.Name) + len(fn.Linkage))
	return fn
}

// scoped says whether functions of the unit's language may be in namespaces
// that are not part of their DW_AT_name.
func (u *unit) scoped() bool {
	switch u.lang {
	case 0x04, 0x1a, 0x21, 0x2b, 0x3a, // C++
		0x1c, // Rust
		0x13: // D
		return true
	}
	return false
}
