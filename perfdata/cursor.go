package perfdata

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// FormatError says that a recording cannot be read, and why: where in which
// file, and what was found there.
type FormatError struct {
	Path   string
	Offset int64
	What   string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: offset %d: %s", e.Path, e.Offset, e.What)
}

// A cursor reads words of either byte order out of a byte slice. Reading past
// the end sets bad and gives zeros from then on, so a parser can go straight
// through and ask once (the habit of debug/dwarf/buf.go).
type cursor struct {
	b   []byte
	big bool
	bad bool
}

func (c *cursor) fail() {
	c.bad = true
	c.b = nil
}

func (c *cursor) u8() uint8 {
	if len(c.b) < 1 {
		c.fail()
		return 0
	}
	v := c.b[0]
	c.b = c.b[1:]
	return v
}

func (c *cursor) u16() uint16 {
	if len(c.b) < 2 {
		c.fail()
		return 0
	}
	v := binary.LittleEndian.Uint16(c.b)
	c.b = c.b[2:]
	if c.big {
		v = bits.ReverseBytes16(v)
	}
	return v
}

func (c *cursor) u32() uint32 {
	if len(c.b) < 4 {
		c.fail()
		return 0
	}
	v := binary.LittleEndian.Uint32(c.b)
	c.b = c.b[4:]
	if c.big {
		v = bits.ReverseBytes32(v)
	}
	return v
}

func (c *cursor) u64() uint64 {
	if len(c.b) < 8 {
		c.fail()
		return 0
	}
	v := binary.LittleEndian.Uint64(c.b)
	c.b = c.b[8:]
	if c.big {
		v = bits.ReverseBytes64(v)
	}
	return v
}

func (c *cursor) i32() int32 { return int32(c.u32()) }

// take returns the next n bytes, not copied.
func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.fail()
		return nil
	}
	v := c.b[:n:n]
	c.b = c.b[n:]
	return v
}

// words appends n words to dst. Nothing is allocated for words that are not
// there.
func (c *cursor) words(dst []uint64, n uint64) []uint64 {
	if n > uint64(len(c.b))/8 {
		c.fail()
		return dst
	}
	b := c.b[:n*8]
	c.b = c.b[n*8:]
	if c.big {
		for ; len(b) >= 8; b = b[8:] {
			dst = append(dst, binary.BigEndian.Uint64(b))
		}
		return dst
	}
	for ; len(b) >= 8; b = b[8:] {
		dst = append(dst, binary.LittleEndian.Uint64(b))
	}
	return dst
}

// cstring returns the bytes before the first NUL of b, or all of b.
func cstring(b []byte) string {
	for i, ch := range b {
		if ch == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// str reads a string as do_write_string of tools/perf/util/header.c wrote it:
// a length that includes the padding, then the bytes.
func (c *cursor) str() string { return cstring(c.take(uint64(c.u32()))) }

// strs reads a count and as many strings.
func (c *cursor) strs() []string {
	n := c.u32()
	if uint64(n) > uint64(len(c.b))/4 {
		c.fail()
		return nil
	}
	out := make([]string, 0, n)
	for range n {
		out = append(out, c.str())
	}
	return out
}

func load64(b []byte, big bool) uint64 {
	if big {
		return binary.BigEndian.Uint64(b)
	}
	return binary.LittleEndian.Uint64(b)
}

func load32(b []byte, big bool) uint32 {
	if big {
		return binary.BigEndian.Uint32(b)
	}
	return binary.LittleEndian.Uint32(b)
}

func load16(b []byte, big bool) uint16 {
	if big {
		return binary.BigEndian.Uint16(b)
	}
	return binary.LittleEndian.Uint16(b)
}
