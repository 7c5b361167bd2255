package unwind

// Bounds of an expression: real ones take a dozen steps and five values
// (GCC's for PLT entries are the longest met).
const (
	maxExprSteps = 1000
	maxExprDepth = 64
)

// DWARF 5, table 7.9: the operations that make sense in call frame information.
const (
	opAddr       = 0x03
	opDeref      = 0x06
	opConst1u    = 0x08
	opConst8s    = 0x0f
	opConstu     = 0x10
	opConsts     = 0x11
	opDup        = 0x12
	opDrop       = 0x13
	opOver       = 0x14
	opPick       = 0x15
	opSwap       = 0x16
	opRot        = 0x17
	opAbs        = 0x19
	opAnd        = 0x1a
	opDiv        = 0x1b
	opMinus      = 0x1c
	opMod        = 0x1d
	opMul        = 0x1e
	opNeg        = 0x1f
	opNot        = 0x20
	opOr         = 0x21
	opPlus       = 0x22
	opPlusUconst = 0x23
	opShl        = 0x24
	opShr        = 0x25
	opShra       = 0x26
	opXor        = 0x27
	opBra        = 0x28
	opEq         = 0x29
	opNe         = 0x2e
	opSkip       = 0x2f
	opLit0       = 0x30
	opReg0       = 0x50
	opBreg0      = 0x70
	opRegx       = 0x90
	opBregx      = 0x92
	opDerefSize  = 0x94
	opNop        = 0x96
)

// evaluator runs one expression over the registers and memory of an Unwinder.
type evaluator struct {
	u     *Unwinder
	regs  *registers // of the callee
	bias  uint64     // of the module: run-time minus link-time address
	c     cursor
	stack [maxExprDepth]uint64
	n     int
	fail  failure
}

// eval runs an expression. Register rules start with the CFA on the stack.
func (u *Unwinder) eval(expr []byte, regs *registers, big bool, initial ...uint64) (uint64, failure) {
	e := evaluator{u: u, regs: regs, bias: u.bias, c: cursor{data: expr, big: big, addrSize: u.arch.word}}
	for _, v := range initial {
		e.push(v)
	}
	for steps := 0; e.c.left() > 0; steps++ {
		if steps >= maxExprSteps {
			return 0, failMalformed
		}
		e.step(e.c.u8())
		if e.c.bad && e.fail == failNone {
			e.fail = failMalformed
		}
		if e.fail != failNone {
			return 0, e.fail
		}
	}
	v := e.pop()
	return v, e.fail
}

func (e *evaluator) push(v uint64) {
	if e.n >= maxExprDepth {
		e.fail = failMalformed
		return
	}
	if e.u.arch.word == 4 {
		v &= 1<<32 - 1
	}
	e.stack[e.n] = v
	e.n++
}

func (e *evaluator) pop() uint64 {
	if e.n == 0 {
		e.fail = failMalformed
		return 0
	}
	e.n--
	return e.stack[e.n]
}

// pick returns the value i below the top.
func (e *evaluator) pick(i int) uint64 {
	if i >= e.n {
		e.fail = failMalformed
		return 0
	}
	return e.stack[e.n-1-i]
}

func (e *evaluator) reg(n uint64, off int64) {
	if n >= maxRegs || e.regs.known>>n&1 == 0 {
		e.fail = failRegister
		return
	}
	e.push(e.regs.v[n] + uint64(off))
}

func (e *evaluator) step(op byte) {
	c := &e.c
	switch {
	case op >= opLit0 && op < opReg0:
		e.push(uint64(op - opLit0))
	case op >= opReg0 && op < opBreg0: // no location makes sense here: its value, as libgcc has it
		e.reg(uint64(op-opReg0), 0)
	case op >= opBreg0 && op < opRegx:
		e.reg(uint64(op-opBreg0), c.sleb())
	case op >= opConst1u && op <= opConst8s:
		size := 1 << ((op - opConst1u) / 2)
		if (op-opConst1u)%2 == 0 {
			e.push(c.uint(size))
		} else {
			e.push(uint64(c.int(size)))
		}
	case op >= opDup && op <= opRot:
		e.shuffle(op)
	case op == opAbs || op >= opNeg && op <= opNot || op == opPlusUconst:
		e.unary(op)
	case op >= opAnd && op <= opXor, op >= opEq && op <= opNe:
		b := e.pop()
		e.binary(op, e.pop(), b)
	case op == opBra || op == opSkip:
		e.jump(op)
	default:
		e.access(op)
	}
}

// access runs the operations that read registers, constants and memory.
func (e *evaluator) access(op byte) {
	c := &e.c
	switch op {
	case opNop:
	case opAddr:
		e.push(c.addr() + e.bias)
	case opConstu:
		e.push(c.uleb())
	case opConsts:
		e.push(uint64(c.sleb()))
	case opRegx:
		e.reg(c.uleb(), 0)
	case opBregx:
		reg := c.uleb()
		e.reg(reg, c.sleb())
	case opDeref:
		e.deref(e.u.arch.word)
	case opDerefSize:
		e.deref(int(c.u8()))
	default:
		e.fail = failMalformed
	}
}

func (e *evaluator) deref(size int) {
	addr := e.pop()
	if size < 1 || size > 8 {
		e.fail = failMalformed
	}
	if e.fail != failNone {
		return
	}
	v, fail := e.u.readSize(addr, size)
	e.fail = fail
	e.push(v)
}

func (e *evaluator) shuffle(op byte) {
	switch op {
	case opDup:
		e.push(e.pick(0))
	case opDrop:
		e.pop()
	case opOver:
		e.push(e.pick(1))
	case opPick:
		e.push(e.pick(int(e.c.u8())))
	case opSwap:
		b, a := e.pop(), e.pop()
		e.push(b)
		e.push(a)
	case opRot:
		c, b, a := e.pop(), e.pop(), e.pop()
		e.push(c)
		e.push(a)
		e.push(b)
	}
}

func (e *evaluator) unary(op byte) {
	a := e.pop()
	switch op {
	case opAbs:
		if s := e.signed(a); s < 0 {
			a = uint64(-s)
		}
	case opNeg:
		a = -a
	case opNot:
		a = ^a
	case opPlusUconst:
		a += e.c.uleb()
	}
	e.push(a)
}

// signed is a value as the comparisons, which are signed (DWARF 5, 2.5.1.4), see it.
func (e *evaluator) signed(v uint64) int64 {
	if e.u.arch.word == 4 {
		return int64(int32(v))
	}
	return int64(v)
}

func (e *evaluator) binary(op byte, a, b uint64) {
	if op >= opEq && op <= opNe {
		e.compare(op, e.signed(a), e.signed(b))
		return
	}
	if (op == opDiv || op == opMod) && b == 0 {
		e.fail = failMalformed
		return
	}
	switch op {
	case opAnd:
		a &= b
	case opDiv:
		a = uint64(e.signed(a) / e.signed(b))
	case opMinus:
		a -= b
	case opMod:
		a %= b
	case opMul:
		a *= b
	case opOr:
		a |= b
	case opPlus:
		a += b
	case opShl:
		a <<= b
	case opShr:
		a >>= b
	case opShra:
		a = uint64(e.signed(a) >> b)
	case opXor:
		a ^= b
	default: // plus_uconst to not are unary, and never come here
		e.fail = failMalformed
	}
	e.push(a)
}

func (e *evaluator) compare(op byte, a, b int64) {
	holds := [...]bool{a == b, a >= b, a > b, a <= b, a < b, a != b}[op-opEq]
	if holds {
		e.push(1)
	} else {
		e.push(0)
	}
}

func (e *evaluator) jump(op byte) {
	d := e.c.int(2)
	if op == opBra && e.pop() == 0 {
		return
	}
	to := int64(e.c.pos) + d
	if to < 0 || to > int64(len(e.c.data)) {
		e.fail = failMalformed
		return
	}
	e.c.pos = int(to)
}
