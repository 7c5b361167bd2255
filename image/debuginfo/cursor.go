package debuginfo

// cursor reads numbers one after another. Behind the end it reads zeros and
// is bad from then on, so that one check after many reads is enough.
type cursor struct {
	b   []byte
	off int
	big bool
	bad bool
}

func (c *cursor) left() int { return len(c.b) - c.off }

func (c *cursor) skip(n uint64) {
	if n > uint64(c.left()) {
		c.off, c.bad = len(c.b), true
		return
	}
	c.off += int(n)
}

func (c *cursor) bytes(n uint64) []byte {
	start := c.off
	c.skip(n)
	if c.bad {
		return nil
	}
	return c.b[start:c.off]
}

func (c *cursor) u8() uint8 {
	if c.off >= len(c.b) {
		c.bad = true
		return 0
	}
	v := c.b[c.off]
	c.off++
	return v
}

// uint reads an unsigned number of n bytes, at most 8.
func (c *cursor) uint(n int) (v uint64) {
	if n > c.left() {
		c.off, c.bad = len(c.b), true
		return 0
	}
	b := c.b[c.off : c.off+n]
	c.off += n
	if c.big {
		for _, x := range b {
			v = v<<8 | uint64(x)
		}
		return v
	}
	for i := n - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}

func (c *cursor) u16() uint16 { return uint16(c.uint(2)) }
func (c *cursor) u32() uint32 { return uint32(c.uint(4)) }

// uleb reads an unsigned LEB128 number (DWARF 5, section 7.6); bits beyond 64
// are lost.
func (c *cursor) uleb() (v uint64) {
	if c.off < len(c.b) && c.b[c.off] < 0x80 {
		c.off++
		return uint64(c.b[c.off-1])
	}
	for shift := 0; ; shift += 7 {
		b := c.u8()
		if shift < 64 {
			v |= uint64(b&0x7f) << shift
		}
		if b < 0x80 {
			return v
		}
	}
}

func (c *cursor) sleb() (v int64) {
	for shift := 0; ; shift += 7 {
		b := c.u8()
		if shift < 64 {
			v |= int64(b&0x7f) << shift
		}
		if b < 0x80 {
			if shift += 7; b&0x40 != 0 && shift < 64 {
				v |= -1 << shift
			}
			return v
		}
	}
}

func (c *cursor) skipLEB() {
	for c.u8() >= 0x80 {
	}
}

func (c *cursor) skipString() {
	for c.u8() != 0 {
	}
}

// length reads an initial length (DWARF 5, section 7.4): the number of bytes
// that follow, and the size of offsets among them, 4 or 8.
func (c *cursor) length() (n uint64, word int) {
	switch v := c.u32(); {
	case v < 0xfffffff0:
		return uint64(v), 4
	case v == 0xffffffff:
		return c.uint(8), 8
	}
	c.bad = true
	return 0, 4
}
