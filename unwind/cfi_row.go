package unwind

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Row says how to find the caller's registers at some address: one line of
// the table call frame information describes (DWARF 5, section 6.4.1).
// Rows are shared by all addresses that have equal ones.
type Row struct {
	cfa    rule
	ra     rule   // how to find the return address
	rules  []rule // all other registers mentioned, by number
	plain  bool   // no rule reads the callee's registers
	raReg  uint8
	signal bool // the caller was interrupted here, its address is no return address
	signed bool // the return address carries an authentication code (AArch64)
	sec    *frameSection
}

// Signal reports whether the row belongs to a signal handler's return
// trampoline: its caller did not call, but was interrupted.
func (r *Row) Signal() bool { return r.signal }

// compile makes a Row of a finished state.
func (s *state) compile(f *fde) Row {
	r := Row{cfa: s.cfa, plain: true, raReg: f.cie.ra, signal: f.cie.signal, signed: s.signed, sec: f.sec}
	for reg, x := range s.regs {
		x.reg = uint8(reg)
		switch {
		case uint8(reg) == f.cie.ra:
			r.ra = x
		case x.kind != ruleUnspecified:
			r.rules = append(r.rules, x)
			r.plain = r.plain && (x.kind == ruleOffset || x.kind == ruleValOffset || x.kind == ruleUndefined)
		}
	}
	return r
}

// key is equal for equal rows of one table.
func (r *Row) key(b []byte) []byte {
	flags := r.raReg << 3
	if r.signal {
		flags |= 1
	}
	if r.signed {
		flags |= 2
	}
	if r.sec.eh {
		flags |= 4
	}
	b = append(b, flags, r.raReg>>5)
	b = r.cfa.key(b)
	b = r.ra.key(b)
	for i := range r.rules {
		b = r.rules[i].key(b)
	}
	return b
}

func (r *rule) key(b []byte) []byte {
	b = append(b, byte(r.kind), r.reg, r.src)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.off))
	return binary.LittleEndian.AppendUint32(b, r.size)
}

// expr returns the bytes of an expression rule.
func (r *Row) expr(x *rule) []byte {
	return r.sec.Data[x.off : uint64(x.off)+uint64(x.size)]
}

// String writes the row in the manner of readelf --debug-dump=frames-interp,
// with register numbers: "r7+16 r6:c-16 ra:c-8".
func (r *Row) String() string {
	var b strings.Builder
	if r.cfa.kind == ruleRegPlusOff {
		fmt.Fprintf(&b, "r%d%+d", r.cfa.src, r.cfa.off)
	} else {
		b.WriteString("exp")
	}
	for i := range r.rules {
		fmt.Fprintf(&b, " r%d:%v", r.rules[i].reg, &r.rules[i])
	}
	fmt.Fprintf(&b, " ra:%v", &r.ra)
	return b.String()
}

func (r *rule) String() string {
	switch r.kind {
	case ruleSame:
		return "s"
	case ruleOffset:
		return fmt.Sprintf("c%+d", r.off)
	case ruleValOffset:
		return fmt.Sprintf("v%+d", r.off)
	case ruleRegister:
		return fmt.Sprintf("r%d", r.src)
	case ruleExpr:
		return "exp"
	case ruleValExpr:
		return "vexp"
	}
	return "u"
}

// Numbers of rows that are none.
const (
	rowUnknown = iota // not looked up yet
	rowNone           // no call frame information covers the address
	rowCorrupt        // it does, but is malformed
	rowFirst          // of Table.rows[0]
)

// rowCache remembers the row of every address asked for: an open hash table,
// at most half full. Recordings have few distinct addresses (thousands, for
// millions of frames), so it is what makes unwinding fast.
type rowCache struct {
	keys []uint64
	rows []uint32 // rowUnknown: the slot is free
	n    int
}

func (c *rowCache) slot(pc uint64) int {
	mask := uint64(len(c.keys) - 1)
	i := (pc * 0x9e3779b97f4a7c15) >> 20 & mask
	for c.rows[i] != rowUnknown && c.keys[i] != pc {
		i = (i + 1) & mask
	}
	return int(i)
}

func (c *rowCache) get(pc uint64) uint32 {
	if c.keys == nil {
		return rowUnknown
	}
	return c.rows[c.slot(pc)]
}

func (c *rowCache) put(pc uint64, row uint32) {
	if 2*c.n >= len(c.keys) {
		c.grow()
	}
	i := c.slot(pc)
	if c.rows[i] == rowUnknown {
		c.n++
	}
	c.keys[i], c.rows[i] = pc, row
}

func (c *rowCache) grow() {
	old := *c
	size := max(256, 2*len(old.keys))
	*c = rowCache{keys: make([]uint64, size), rows: make([]uint32, size), n: old.n}
	for i, row := range old.rows {
		if row != rowUnknown {
			j := c.slot(old.keys[i])
			c.keys[j], c.rows[j] = old.keys[i], row
		}
	}
}
