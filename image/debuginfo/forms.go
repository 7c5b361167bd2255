package debuginfo

// formSize is how many bytes an attribute of a form takes, -1 if that is told
// by its content or the form is not known.
func (e encoding) formSize(form uint32) int {
	switch form {
	case formFlagPresent, formImplicit:
		return 0
	case formData1, formFlag, formRef1, formStrx1, formAddrx1:
		return 1
	case formData2, formRef2, formStrx2, formAddrx2:
		return 2
	case formStrx3, formAddrx3:
		return 3
	case formData4, formRef4, formRefSup4, formStrx4, formAddrx4:
		return 4
	case formData8, formRef8, formRefSig8, formRefSup8:
		return 8
	case formData16:
		return 16
	case formAddr:
		return int(e.addrSize)
	case formStrp, formLineStrp, formSecOffset, formStrpSup, formGNURefAlt, formGNUStrpAlt:
		return int(e.word)
	case formRefAddr:
		if e.version <= 2 {
			return int(e.addrSize)
		}
		return int(e.word)
	}
	return -1
}

// skipForm steps over an attribute.
func (c *cursor) skipForm(form uint32, e encoding) {
	if n := e.formSize(form); n >= 0 {
		c.skip(uint64(n))
		return
	}
	switch form {
	case formUdata, formSdata, formRefUdata, formStrx, formAddrx, formLoclistx, formRnglistx, formGNUAddrIndex, formGNUStrIndex:
		c.skipLEB()
	case formString:
		c.skipString()
	case formBlock, formExprloc:
		c.skip(c.uleb())
	case formBlock1:
		c.skip(uint64(c.u8()))
	case formBlock2:
		c.skip(uint64(c.u16()))
	case formBlock4:
		c.skip(uint64(c.u32()))
	case formIndirect:
		if form := uint32(c.uleb()); form != formIndirect && form != formImplicit {
			c.skipForm(form, e)
			return
		}
		c.bad = true
	default:
		c.bad = true // of unknown size: nothing behind it can be read
	}
}

// value is an attribute's: a number, offset, index or reference, as its form
// says; or the text of formString.
type value struct {
	form uint32
	u    uint64
	text []byte
}

func (v value) present() bool { return v.form != 0 }

// value reads an attribute.
func (c *cursor) value(s attrSpec, e encoding) (v value) {
	v.form = s.form
	if s.form == formIndirect {
		if v.form = uint32(c.uleb()); v.form == formIndirect {
			c.bad = true
			return value{}
		}
	}
	switch v.form {
	case formImplicit:
		v.u = uint64(s.implicit)
	case formFlagPresent:
		v.u = 1
	case formSdata:
		v.u = uint64(c.sleb())
	case formUdata, formRefUdata, formStrx, formAddrx, formRnglistx, formGNUAddrIndex, formGNUStrIndex:
		v.u = c.uleb()
	case formString:
		start := c.off
		if c.skipString(); !c.bad && c.off-start < maxString {
			v.text = c.b[start : c.off-1]
		}
	default:
		if n := e.formSize(v.form); n >= 0 && n <= 8 {
			v.u = c.uint(n)
			return v
		}
		c.skipForm(v.form, e)
		return value{}
	}
	return v
}

// constant is the value of the constant class: a line, file number or size.
func (v value) constant() (uint64, bool) {
	switch v.form {
	case formData1, formData2, formData4, formData8, formUdata, formSdata, formImplicit:
		return v.u, true
	}
	return 0, false
}

// offset is the value of a class that points into another section.
func (v value) offset() (uint64, bool) {
	switch v.form {
	case formSecOffset, formData4, formData8: // the latter two before DWARF 4
		return v.u, true
	}
	return 0, false
}

// address is the value of the address class.
func (u *unit) address(v value) (uint64, bool) {
	switch v.form {
	case formAddr:
		return v.u, true
	case formAddrx, formAddrx1, formAddrx2, formAddrx3, formAddrx4, formGNUAddrIndex:
		return u.indexedAddress(v.u)
	}
	return 0, false
}

func (u *unit) indexedAddress(i uint64) (uint64, bool) {
	if i > maxIndex {
		return 0, false
	}
	n := int(u.addrSize)
	c := cursor{b: u.addrFile.sections[secAddr].from(u.addrBase+i*uint64(n), n), big: u.big}
	return c.uint(n), !c.bad
}

// maxIndex keeps products with the size of an element from wrapping.
const maxIndex = 1 << 40

// text is the value of the string class.
func (u *unit) text(v value) string {
	switch v.form {
	case formString:
		return string(v.text)
	case formStrp:
		return u.file.sections[secStr].cstring(v.u)
	case formLineStrp:
		return u.file.sections[secLineStr].cstring(v.u)
	case formGNUStrpAlt, formStrpSup:
		if alt := u.file.alternate(); alt != nil {
			return alt.sections[secStr].cstring(v.u)
		}
	case formStrx, formStrx1, formStrx2, formStrx3, formStrx4, formGNUStrIndex:
		if v.u > maxIndex {
			return ""
		}
		n := int(u.word)
		c := cursor{b: u.file.sections[secStrOffsets].from(u.strBase+v.u*uint64(n), n), big: u.big}
		if off := c.uint(n); !c.bad {
			return u.file.sections[secStr].cstring(off)
		}
	}
	return ""
}
