package unwind

import "fmt"

// A section of call frame information is a row of entries: CIEs, which hold
// what many functions share, and FDEs, one for each range of code (DWARF 5,
// section 6.4.1; LSB Core 5.0, 10.6.1 for the layout of .eh_frame).

// frameSection is .eh_frame or .debug_frame.
type frameSection struct {
	Section
	eh   bool
	cies map[uint64]*cie // by offset
}

// cie is a Common Information Entry.
type cie struct {
	codeAlign uint64
	dataAlign int64
	ra        uint8 // the return address column
	addrSize  int
	segSize   int
	augmented bool // 'z': FDEs have augmentation data
	signal    bool // 'S': the frame was interrupted, not called from
	fdeEnc    byte // 'R'
	program   []byte
	initial   state // after program
}

// fde is a Frame Description Entry: the program for code [start, end).
type fde struct {
	cie        *cie
	sec        *frameSection
	off        uint64 // of the entry in its section
	start, end uint64
	program    []byte
}

// FormatError says what is wrong with call frame information and where.
type FormatError struct {
	Section string
	Offset  uint64 // in the section
	Msg     string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s+%#x: %s", e.Section, e.Offset, e.Msg)
}

func (s *frameSection) errorf(off uint64, format string, args ...any) error {
	return &FormatError{s.Name, off, fmt.Sprintf(format, args...)}
}

// header is the start of an entry.
type entryHeader struct {
	off  uint64
	next uint64 // offset of the entry that follows
	cie  uint64 // offset of an FDE's CIE
	kind entryKind
	body cursor // at what follows the CIE pointer, ending with the entry
}

type entryKind uint8

const (
	entryFDE entryKind = iota
	entryCIE
	entryPadding // a zero length: the end to some readers, padding to others
)

// header reads the length and kind of the entry at off.
func (t *Table) header(s *frameSection, off uint64) (h entryHeader, err error) {
	if off > uint64(len(s.Data)) {
		return h, s.errorf(off, "entry beyond the section's %d bytes", len(s.Data))
	}
	c := cursor{data: s.Data, pos: int(off), big: t.big, addrSize: t.addrSize}
	h.off = off
	length := c.uint(4)
	idSize := 4
	if length == 0xffffffff { // 64-bit DWARF; .eh_frame keeps its 4-byte CIE pointer (LSB)
		length = c.uint(8)
		if !s.eh {
			idSize = 8
		}
	}
	if !c.bad && length == 0 {
		h.kind, h.next = entryPadding, uint64(c.pos)
		return h, nil
	}
	if c.bad || length > uint64(c.left()) {
		return h, s.errorf(off, "length %#x, %d bytes left", length, c.left())
	}
	h.next = uint64(c.pos) + length
	c.data = s.Data[:h.next]
	at := uint64(c.pos)
	id := c.uint(idSize)
	if c.bad {
		return h, s.errorf(off, "length %#x leaves no room for a CIE pointer", length)
	}
	h.body = c
	switch {
	case s.eh && id == 0, !s.eh && idSize == 4 && id == 0xffffffff, !s.eh && id == 1<<64-1:
		h.kind = entryCIE
	case s.eh:
		h.cie = at - id // wraps if it points before the section: refused by header
	default:
		h.cie = id
	}
	return h, nil
}

// Programs longer than any compiler writes are refused: every address looked
// up costs a program's length. The longest met among 2.4 million are 23,591
// bytes (FDE) and 39 (CIE).
const (
	maxProgram    = 1 << 20
	maxCIEProgram = 1 << 12
	maxCIEs       = 1 << 12 // that are kept; files have some dozens
)

// cie returns the CIE at off.
func (t *Table) cie(s *frameSection, off uint64) (*cie, error) {
	if c, ok := s.cies[off]; ok {
		if c == nil {
			return nil, s.errorf(off, "unusable CIE")
		}
		return c, nil
	}
	c, err := t.parseCIE(s, off)
	if err != nil {
		c = nil
	}
	if len(s.cies) < maxCIEs {
		s.cies[off] = c
	}
	return c, err
}

func (t *Table) parseCIE(s *frameSection, off uint64) (*cie, error) {
	h, err := t.header(s, off)
	if err != nil {
		return nil, err
	}
	if h.kind != entryCIE {
		return nil, s.errorf(off, "not a CIE")
	}
	c := &h.body
	e := &cie{addrSize: t.addrSize}
	version := c.u8()
	if version != 1 && version != 3 && version != 4 {
		return nil, s.errorf(off, "CIE version %d", version)
	}
	aug := c.cstring()
	if aug == "eh" { // GCC 2: a pointer to exception tables
		c.addr()
	}
	if version == 4 {
		e.addrSize, e.segSize = int(c.u8()), int(c.u8())
		if e.addrSize != 4 && e.addrSize != 8 || e.segSize > 8 {
			return nil, s.errorf(off, "address size %d, segment size %d", e.addrSize, e.segSize)
		}
	}
	e.codeAlign, e.dataAlign = c.uleb(), c.sleb()
	ra := uint64(0)
	if version == 1 {
		ra = uint64(c.u8())
	} else {
		ra = c.uleb()
	}
	if c.bad {
		return nil, s.errorf(off, "CIE ends in its header")
	}
	if ra >= maxRegs {
		return nil, s.errorf(off, "return address column %d", ra)
	}
	e.ra = uint8(ra)
	if err := e.augmentation(s, off, aug, c); err != nil {
		return nil, err
	}
	e.program = c.data[c.pos:]
	if len(e.program) > maxCIEProgram {
		return nil, s.errorf(off, "CIE program of %d bytes", len(e.program))
	}
	return e, t.initialState(s, off, e)
}

// augmentation reads the augmentation data of a CIE, and leaves c at its program.
func (e *cie) augmentation(s *frameSection, off uint64, aug string, c *cursor) error {
	if aug == "" || aug == "eh" {
		return nil
	}
	if aug[0] != 'z' {
		return s.errorf(off, "augmentation %q", aug)
	}
	e.augmented = true
	n := c.uleb()
	if c.bad || n > uint64(c.left()) {
		return s.errorf(off, "augmentation of %d bytes, %d left", n, c.left())
	}
	end := c.pos + int(n)
	b := bases{section: s.Addr}
	for i := 1; i < len(aug); i++ {
		switch aug[i] {
		case 'R':
			e.fdeEnc = c.u8()
		case 'P':
			c.encoded(c.u8(), b)
		case 'L':
			c.u8()
		case 'S':
			e.signal = true
		case 'B', 'G': // AArch64: signed with key B; tagged stack. The marks of return addresses are stripped anyway
		default: // what follows is unknown, and only its length is told
			i = len(aug)
		}
	}
	if c.bad || c.pos > end {
		return s.errorf(off, "augmentation data too short for %q", aug)
	}
	c.pos = end
	return nil
}

// fde reads the FDE at off.
func (t *Table) fde(s *frameSection, off uint64) (f fde, err error) {
	h, err := t.header(s, off)
	if err != nil {
		return f, err
	}
	if h.kind != entryFDE {
		return f, s.errorf(off, "not an FDE")
	}
	return t.fdeBody(s, &h)
}

func (t *Table) fdeBody(s *frameSection, h *entryHeader) (f fde, err error) {
	if f.cie, err = t.cie(s, h.cie); err != nil {
		return f, err
	}
	c := &h.body
	c.addrSize = f.cie.addrSize
	c.take(uint64(f.cie.segSize))
	b := bases{section: s.Addr, text: t.textBase, data: t.dataBase}
	f.sec, f.off = s, h.off
	if f.cie.fdeEnc&encIndirect != 0 {
		return f, s.errorf(h.off, "start address encoded as %#x", f.cie.fdeEnc)
	}
	f.start = c.encoded(f.cie.fdeEnc, b)
	size := c.encodedValue(f.cie.fdeEnc & 0x0f)
	if f.cie.augmented {
		c.take(c.uleb())
	}
	if c.bad {
		return f, s.errorf(h.off, "FDE ends in its header")
	}
	f.end = f.start + size
	if f.end < f.start {
		return f, s.errorf(h.off, "code at %#x of %#x bytes", f.start, size)
	}
	f.program = c.data[c.pos:]
	if len(f.program) > maxProgram {
		return f, s.errorf(h.off, "program of %d bytes", len(f.program))
	}
	return f, nil
}
