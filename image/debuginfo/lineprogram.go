package debuginfo

const (
	lnsCopy         = 1
	lnsAdvancePC    = 2
	lnsAdvanceLine  = 3
	lnsSetFile      = 4
	lnsConstAddPC   = 8
	lnsFixedAdvance = 9
	lneEndSequence  = 1
	lneSetAddress   = 2
	lneDefineFile   = 3
)

// row is a row of a line table. It holds from its address up to the next
// row's in the same sequence.
type row struct {
	addr, file uint64
	line       int64
	op         uint64 // of a VLIW instruction
}

// lineRun is a line program that runs (DWARF 5, section 6.2.5).
type lineRun struct {
	t    *lineTable
	qs   []Query
	next int // first query not below the last row
	open bool
	last row
}

// runLines fills the positions of queries from the line program of a unit,
// which may be others' too.
func (u *unit) runLines(qs []Query) {
	t := u.lineTable()
	if t == nil || t.ran {
		return
	}
	t.ran = true
	s := &t.f.sections[secLine]
	size := int(t.end - t.program)
	b := s.from(t.program, size)
	c := cursor{b: b[:min(size, len(b))], big: u.big}
	r := lineRun{t: t, qs: qs}
	for c.left() > 0 && !c.bad {
		r.sequence(&c)
	}
	t.f.spend(c.off)
}

func (r *lineRun) sequence(c *cursor) {
	t := r.t
	s := row{file: 1, line: 1}
	r.open = false
	for c.left() > 0 && !c.bad {
		switch op := c.u8(); {
		case op >= t.opcodeBase:
			n := op - t.opcodeBase
			t.advance(&s, uint64(n/t.lineRange))
			s.line += int64(t.lineBase) + int64(n%t.lineRange)
			r.emit(s)
		case op == 0:
			if r.extended(c, &s) {
				return
			}
		case op == lnsCopy:
			r.emit(s)
		case op == lnsAdvancePC:
			t.advance(&s, c.uleb())
		case op == lnsAdvanceLine:
			s.line += c.sleb()
		case op == lnsSetFile:
			s.file = c.uleb()
		case op == lnsConstAddPC:
			t.advance(&s, uint64((255-t.opcodeBase)/t.lineRange))
		case op == lnsFixedAdvance:
			s.addr += uint64(c.u16())
			s.op = 0
		default: // also those of later versions: they say how many arguments they have
			for range t.argCounts[op] {
				c.skipLEB()
			}
		}
	}
}

// extended runs an extended opcode; it says true at the end of a sequence.
func (r *lineRun) extended(c *cursor, s *row) bool {
	n := c.uleb()
	end := uint64(c.off) + n
	if n == 0 || n > uint64(c.left()) {
		c.bad = n > 0
		return false
	}
	switch c.u8() {
	case lneEndSequence:
		r.emit(*s)
		c.off = int(end)
		return true
	case lneSetAddress:
		s.addr, s.op = c.uint(int(min(n-1, 8))), 0
	case lneDefineFile:
		if len(r.t.files) < maxFiles {
			v := c.value(attrSpec{form: formString}, encoding{})
			r.t.files = append(r.t.files, lineFile{v, c.uleb()})
		}
	}
	c.off = int(end)
	return false
}

func (t *lineTable) advance(s *row, n uint64) {
	if t.maxOps <= 1 {
		s.addr += n * uint64(t.minInst)
		return
	}
	ops := uint64(t.maxOps)
	s.addr += uint64(t.minInst) * ((s.op + n) / ops)
	s.op = (s.op + n) % ops
}

// emit ends the row before s and gives its position to the queries in it.
// Addresses only grow within a sequence.
func (r *lineRun) emit(s row) {
	if !r.open {
		r.next = firstFrom(r.qs, s.addr)
	} else if r.next < len(r.qs) && r.qs[r.next].Addr < s.addr {
		file := ""
		if r.last.addr >= r.t.f.src.Lowest {
			file = r.t.file(r.last.file)
		}
		for ; r.next < len(r.qs) && r.qs[r.next].Addr < s.addr; r.next++ {
			q := &r.qs[r.next]
			if file != "" && q.Addr >= r.last.addr {
				q.File, q.Line = file, int(max(0, min(r.last.line, 1<<31-1)))
			}
		}
	}
	r.last, r.open = s, true
}
