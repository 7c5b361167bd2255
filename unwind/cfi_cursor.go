package unwind

// cursor reads bytes of a section straight through. The first read that does
// not fit sets bad, and every later one returns zero, so that a parser can
// check once at the end.
type cursor struct {
	data     []byte
	pos      int
	big      bool // byte order
	addrSize int  // bytes of an address, 4 or 8
	bad      bool
}

func (c *cursor) left() int { return len(c.data) - c.pos }

// take returns the next n bytes, nil if there are not as many.
func (c *cursor) take(n uint64) []byte {
	if c.bad || n > uint64(c.left()) {
		c.bad = true
		return nil
	}
	b := c.data[c.pos : c.pos+int(n)]
	c.pos += int(n)
	return b
}

func (c *cursor) u8() byte {
	if c.bad || c.pos >= len(c.data) {
		c.bad = true
		return 0
	}
	b := c.data[c.pos]
	c.pos++
	return b
}

// uint reads an unsigned number of size bytes, 1 to 8.
func (c *cursor) uint(size int) uint64 {
	return decodeUint(c.take(uint64(size)), c.big)
}

// int reads a two's complement number of size bytes.
func (c *cursor) int(size int) int64 {
	shift := 64 - 8*size
	return int64(c.uint(size)<<shift) >> shift
}

func (c *cursor) addr() uint64 { return c.uint(c.addrSize) }

func (c *cursor) uleb() uint64 {
	var v uint64
	for shift := uint(0); ; shift += 7 {
		b := c.u8()
		if c.bad {
			return 0
		}
		if shift < 64 {
			v |= uint64(b&0x7f) << shift
		}
		if b&0x80 == 0 {
			return v
		}
	}
}

func (c *cursor) sleb() int64 {
	var v int64
	for shift := uint(0); ; {
		b := c.u8()
		if c.bad {
			return 0
		}
		if shift < 64 {
			v |= int64(b&0x7f) << shift
		}
		shift += 7
		if b&0x80 != 0 {
			continue
		}
		if b&0x40 != 0 && shift < 64 {
			v |= -1 << shift
		}
		return v
	}
}

// cstring reads a string that ends in a zero byte.
func (c *cursor) cstring() string {
	for i := c.pos; i < len(c.data) && !c.bad; i++ {
		if c.data[i] == 0 {
			s := string(c.data[c.pos:i])
			c.pos = i + 1
			return s
		}
	}
	c.bad = true
	return ""
}

func decodeUint(b []byte, big bool) uint64 {
	var v uint64
	if big {
		for _, x := range b {
			v = v<<8 | uint64(x)
		}
		return v
	}
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}

// Pointer encodings of .eh_frame (LSB Core 5.0, 10.5 "DWARF Extensions"): the
// low four bits are the format, the next three what the value is relative to.
const (
	encAbsptr   = 0x00
	encULEB     = 0x01
	encUdata2   = 0x02
	encUdata4   = 0x03
	encUdata8   = 0x04
	encSigned   = 0x08
	encSLEB     = 0x09
	encSdata2   = 0x0a
	encSdata4   = 0x0b
	encSdata8   = 0x0c
	encPCRel    = 0x10
	encTextRel  = 0x20
	encDataRel  = 0x30
	encFuncRel  = 0x40
	encAligned  = 0x50
	encIndirect = 0x80
	encOmit     = 0xff
)

// bases are the addresses encoded pointers count from.
type bases struct {
	section uint64 // of the first byte of cursor.data, for pcrel
	text    uint64
	data    uint64
	fn      uint64
}

// encoded reads an encoded pointer. Indirect ones name memory of the running
// process: their value is the address of that memory, and the caller decides.
func (c *cursor) encoded(enc byte, b bases) uint64 {
	if enc == encOmit {
		return 0
	}
	if enc&0x70 == encAligned {
		pad := -(b.section + uint64(c.pos)) & uint64(c.addrSize-1)
		c.take(pad)
		return c.addr()
	}
	at := b.section + uint64(c.pos)
	v := c.encodedValue(enc)
	switch enc & 0x70 {
	case encAbsptr:
	case encPCRel:
		v += at
	case encTextRel:
		v += b.text
	case encDataRel:
		v += b.data
	case encFuncRel:
		v += b.fn
	default:
		c.bad = true
	}
	if c.addrSize == 4 {
		v &= 1<<32 - 1
	}
	return v
}

// encodedValue reads the number of an encoded pointer without its base.
func (c *cursor) encodedValue(enc byte) uint64 {
	switch enc & 0x0f {
	case encAbsptr:
		return c.addr()
	case encSigned:
		return uint64(c.int(c.addrSize))
	case encULEB:
		return c.uleb()
	case encSLEB:
		return uint64(c.sleb())
	case encUdata2:
		return c.uint(2)
	case encUdata4:
		return c.uint(4)
	case encUdata8, encSdata8:
		return c.uint(8)
	case encSdata2:
		return uint64(c.int(2))
	case encSdata4:
		return uint64(c.int(4))
	}
	c.bad = true
	return 0
}
