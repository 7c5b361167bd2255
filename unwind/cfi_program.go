package unwind

// maxRegs is how many DWARF registers are followed. Both x86-64 (17 and the
// vector registers) and AArch64 (31, sp, pc) keep everything an unwinder needs
// below it; rules for other registers are read and forgotten.
const maxRegs = 33

// raSignState is AArch64's pseudo register: 1 while the return address is
// signed (DWARF for the Arm 64-bit Architecture, section 4.1).
const raSignState = 34

// ruleKind says where the caller's value of a register is (DWARF 5, section 6.4.1).
type ruleKind uint8

const (
	ruleUnspecified ruleKind = iota // not mentioned: by every ABI here the same value
	ruleUndefined                   // lost
	ruleSame
	ruleOffset     // in memory at CFA+off
	ruleValOffset  // is CFA+off
	ruleRegister   // in register src
	ruleExpr       // in memory at the address an expression yields
	ruleValExpr    // is what an expression yields
	ruleRegPlusOff // of a CFA only: register src + off
)

// rule is how to find one value. An expression is size bytes at off of the
// section the rule comes from.
type rule struct {
	off  int64
	size uint32
	kind ruleKind
	reg  uint8 // the register restored
	src  uint8
}

// state is a row in the making.
type state struct {
	cfa    rule
	last   rule // the CFA as register and offset, from before an expression
	regs   [maxRegs]rule
	signed bool // the return address carries a pointer authentication code
}

// machine runs the program of a CIE or FDE.
type machine struct {
	state
	cie   *cie
	fde   *fde // nil while a CIE's program runs
	tab   *Table
	sec   *frameSection
	saved []state
	loc   uint64 // start of the row in the making
}

// maxSaved bounds DW_CFA_remember_state; compilers nest it once.
const maxSaved = 64

func (t *Table) initialState(s *frameSection, off uint64, e *cie) error {
	m := machine{cie: e, tab: t, sec: s}
	if _, ok := m.run(e.program, 0); !ok {
		return s.errorf(off, "malformed CIE program")
	}
	e.initial = m.state
	return nil
}

// row runs the program of f up to pc and returns the state there and the
// range of code it holds for.
func (t *Table) state(f *fde, pc uint64) (st state, start, end uint64, err error) {
	m := machine{state: f.cie.initial, cie: f.cie, fde: f, tab: t, sec: f.sec, loc: f.start}
	end, ok := m.run(f.program, pc)
	if !ok {
		return st, 0, 0, f.sec.errorf(f.off, "malformed program of the code at %#x", f.start)
	}
	return m.state, m.loc, min(end, f.end), nil
}

// run executes until the program ends or a row begins behind pc; it returns
// where that row begins (beyond every address if the program ended).
func (m *machine) run(program []byte, pc uint64) (next uint64, ok bool) {
	c := cursor{data: program, big: m.tab.big, addrSize: m.cie.addrSize}
	for c.left() > 0 {
		at := c.pos
		op := c.u8()
		loc, moved := m.advance(&c, op, at)
		if moved {
			if c.bad || m.fde == nil {
				return 0, false
			}
			if loc > pc {
				return loc, true
			}
			m.loc = loc
			continue
		}
		if !m.execute(&c, op) || c.bad {
			return 0, false
		}
	}
	return 1<<64 - 1, true
}

// Opcodes, DWARF 5 table 7.29 and vendor extensions.
const (
	cfaAdvanceLoc = 0x40
	cfaOffset     = 0x80
	cfaRestore    = 0xc0

	cfaNop                  = 0x00
	cfaSetLoc               = 0x01
	cfaAdvanceLoc1          = 0x02
	cfaAdvanceLoc2          = 0x03
	cfaAdvanceLoc4          = 0x04
	cfaOffsetExtended       = 0x05
	cfaRestoreExtended      = 0x06
	cfaUndefined            = 0x07
	cfaSameValue            = 0x08
	cfaRegister             = 0x09
	cfaRememberState        = 0x0a
	cfaRestoreState         = 0x0b
	cfaDefCFA               = 0x0c
	cfaDefCFARegister       = 0x0d
	cfaDefCFAOffset         = 0x0e
	cfaDefCFAExpression     = 0x0f
	cfaExpression           = 0x10
	cfaOffsetExtendedSF     = 0x11
	cfaDefCFASF             = 0x12
	cfaDefCFAOffsetSF       = 0x13
	cfaValOffset            = 0x14
	cfaValOffsetSF          = 0x15
	cfaValExpression        = 0x16
	cfaMIPSAdvanceLoc8      = 0x1d
	cfaNegateRAStateWithPC  = 0x2c // AArch64
	cfaNegateRAState        = 0x2d // AArch64; SPARC's window save elsewhere
	cfaGNUArgsSize          = 0x2e
	cfaGNUNegOffsetExtended = 0x2f
)

// advance executes the instructions that begin a new row. at is the offset of
// the instruction in the program.
func (m *machine) advance(c *cursor, op byte, at int) (loc uint64, ok bool) {
	switch {
	case op&0xc0 == cfaAdvanceLoc:
		return m.loc + uint64(op&0x3f)*m.cie.codeAlign, true
	case op == cfaAdvanceLoc1:
		return m.loc + c.uint(1)*m.cie.codeAlign, true
	case op == cfaAdvanceLoc2:
		return m.loc + c.uint(2)*m.cie.codeAlign, true
	case op == cfaAdvanceLoc4:
		return m.loc + c.uint(4)*m.cie.codeAlign, true
	case op == cfaMIPSAdvanceLoc8:
		return m.loc + c.uint(8)*m.cie.codeAlign, true
	case op == cfaSetLoc:
		b := bases{section: m.sec.Addr + m.offset(c), text: m.tab.textBase, data: m.tab.dataBase}
		if m.fde != nil {
			b.fn = m.fde.start
		}
		return c.encoded(m.cie.fdeEnc&^encIndirect, b), true
	}
	return 0, false
}

// offset is where in the section the program c reads begins. Both are slices
// of one array, and their ends are what they still share.
func (m *machine) offset(c *cursor) uint64 {
	return uint64(cap(m.sec.Data) - cap(c.data))
}

// execute runs one instruction that does not begin a row.
func (m *machine) execute(c *cursor, op byte) bool {
	switch op & 0xc0 {
	case cfaOffset:
		m.set(uint64(op&0x3f), rule{kind: ruleOffset, off: int64(c.uleb()) * m.cie.dataAlign})
		return true
	case cfaRestore:
		m.restore(uint64(op & 0x3f))
		return true
	}
	switch op {
	case cfaNop:
	case cfaDefCFA, cfaDefCFASF, cfaDefCFARegister, cfaDefCFAOffset, cfaDefCFAOffsetSF, cfaDefCFAExpression:
		return m.defCFA(c, op)
	case cfaRestoreExtended:
		m.restore(c.uleb())
	case cfaRememberState:
		if len(m.saved) >= maxSaved {
			return false
		}
		m.saved = append(m.saved, m.state)
	case cfaRestoreState:
		if len(m.saved) == 0 {
			return false
		}
		m.state = m.saved[len(m.saved)-1]
		m.saved = m.saved[:len(m.saved)-1]
	case cfaNegateRAState, cfaNegateRAStateWithPC:
		m.signed = !m.signed
	case cfaGNUArgsSize: // bytes of arguments pushed: matters to landing pads only
		c.uleb()
	default:
		return m.setRule(c, op)
	}
	return true
}

// setRule runs the instructions that name a register and say where it is.
func (m *machine) setRule(c *cursor, op byte) bool {
	reg := c.uleb()
	var r rule
	switch op {
	case cfaUndefined:
		r.kind = ruleUndefined
	case cfaSameValue:
		r.kind = ruleSame
	case cfaRegister:
		r.kind = ruleRegister
		src := c.uleb()
		if src >= maxRegs {
			r.kind, src = ruleUndefined, 0
		}
		r.src = uint8(src)
	case cfaOffsetExtended:
		r = rule{kind: ruleOffset, off: int64(c.uleb()) * m.cie.dataAlign}
	case cfaOffsetExtendedSF:
		r = rule{kind: ruleOffset, off: c.sleb() * m.cie.dataAlign}
	case cfaGNUNegOffsetExtended:
		r = rule{kind: ruleOffset, off: -int64(c.uleb()) * m.cie.dataAlign}
	case cfaValOffset:
		r = rule{kind: ruleValOffset, off: int64(c.uleb()) * m.cie.dataAlign}
	case cfaValOffsetSF:
		r = rule{kind: ruleValOffset, off: c.sleb() * m.cie.dataAlign}
	case cfaExpression:
		r = m.expression(c, ruleExpr)
	case cfaValExpression:
		r = m.expression(c, ruleValExpr)
	default:
		return false
	}
	m.set(reg, r)
	return true
}

// defCFA runs the instructions that define the CFA. Register and offset alone
// may be set after an expression, contrary to the standard: libgcrypt's
// hand-written code does it, and means the register or offset from before.
func (m *machine) defCFA(c *cursor, op byte) bool {
	if op == cfaDefCFAExpression {
		m.cfa = m.expression(c, ruleValExpr)
		return true
	}
	r := m.last
	if op == cfaDefCFA || op == cfaDefCFASF || op == cfaDefCFARegister {
		reg := c.uleb()
		if reg >= maxRegs {
			return false
		}
		r.kind, r.src = ruleRegPlusOff, uint8(reg)
	}
	switch op {
	case cfaDefCFA, cfaDefCFAOffset:
		r.off = int64(c.uleb())
	case cfaDefCFASF, cfaDefCFAOffsetSF:
		r.off = c.sleb() * m.cie.dataAlign
	}
	m.cfa, m.last = r, r
	return r.kind == ruleRegPlusOff
}

// expression reads a block and notes where in the section it is.
func (m *machine) expression(c *cursor, kind ruleKind) rule {
	n := c.uleb()
	off := m.offset(c) + uint64(c.pos)
	if c.take(n) == nil && n > 0 {
		return rule{}
	}
	return rule{kind: kind, off: int64(off), size: uint32(n)}
}

func (m *machine) set(reg uint64, r rule) {
	if reg == raSignState && r.kind == ruleValExpr {
		m.signed = true // DW_OP_lit1 in what compilers write
	}
	if reg < maxRegs {
		r.reg = uint8(reg)
		m.regs[reg] = r
	}
}

func (m *machine) restore(reg uint64) {
	if reg < maxRegs {
		m.regs[reg] = m.cie.initial.regs[reg]
	}
}
