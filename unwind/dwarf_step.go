package unwind

import "encoding/binary"

// locate finds out what is mapped at pc and which row holds there.
func (u *Unwinder) locate() {
	at := u.pc
	if !u.exact {
		at-- // in the call: the return address may be beyond its function
	}
	u.mod, u.vaddr, u.code = u.space.Find(at)
	u.bias = at - u.vaddr
	u.row, u.badRow = nil, false
	if u.code && u.mod != nil {
		u.row, u.badRow = u.mod.Table().Row(u.vaddr)
	}
}

// frame is the current frame as it is reported. The kernel makes a signal
// handler return to the first byte of a trampoline that nobody calls from, so
// that is not a return address, though it is looked up like one: the
// trampoline's FDE begins a byte early (glibc, sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c).
func (u *Unwinder) frame() Frame {
	return Frame{Addr: u.pc, Return: !u.exact && (u.row == nil || !u.row.signal), Mode: ModeUser}
}

// step goes from a frame to its caller. At the end of the stack, or if there
// is no way on, it returns false and why.
func (u *Unwinder) step() (more bool, o Outcome) {
	frameless := u.frameless()
	if frameless && u.goexit() {
		return false, EndOfStack
	}
	switched := u.goSwitchedStack()
	more, o = u.caller()
	if more {
		if u.locate(); u.code {
			return true, EndOfStack
		}
		o = Corrupt
	}
	switch {
	case switched:
		return false, DumpTooShort
	case frameless && o == Corrupt:
		return false, EndOfStack
	}
	return false, o
}

func (u *Unwinder) caller() (more bool, o Outcome) {
	if u.row == nil {
		if u.badRow {
			u.Stats.BadCFI++
			return u.withoutCFI(Corrupt)
		}
		return u.withoutCFI(NoCFI)
	}
	more, o, fail := u.apply(u.row)
	switch fail {
	case failNone:
		u.Stats.CFI++
		return more, o
	case failMalformed:
		u.Stats.BadCFI++
		return u.withoutCFI(Corrupt)
	case failRegister: // after frames without CFI not all registers are known
		return u.withoutCFI(NoRegister)
	}
	return false, fail.outcome()
}

// apply goes to the caller as row says.
func (u *Unwinder) apply(row *Row) (more bool, o Outcome, fail failure) {
	if row.ra.kind == ruleUndefined {
		return false, EndOfStack, failNone // DWARF 5, 6.4.4
	}
	u.regs.set(u.arch.pc, u.pc)
	cfa, fail := u.cfa(row)
	if fail != failNone {
		return false, o, fail
	}
	ra, fail := u.value(row, &row.ra, cfa, &u.regs)
	if fail != failNone {
		return false, o, fail
	}
	sp, known := u.regs.v[u.arch.sp], u.regs.has(u.arch.sp)
	if u.mod.goBin {
		u.restoreGoFP(row, cfa)
	}
	if u.restore(row, cfa) && known && !row.signal && !u.advances(row, sp, cfa) {
		return false, DidNotAdvance, failNone
	}
	ra = u.stripPAC(ra, row.signed)
	if ra == 0 {
		return false, EndOfStack, failNone
	}
	if u.arch.hasLR {
		u.regs.set(row.raReg, ra)
	}
	u.pc, u.exact = ra, row.signal
	return true, o, failNone
}

// advances reports whether a frame from sp to cfa can be one. It is empty
// only where the return address need not be in memory, in the leaf.
func (u *Unwinder) advances(row *Row, sp, cfa uint64) bool {
	if u.arch.hasLR {
		inLR := row.ra.kind == ruleUnspecified || row.ra.kind == ruleSame
		return cfa >= sp && (u.exact || cfa > sp && !inLR)
	}
	return cfa > sp
}

// cfa computes the canonical frame address.
func (u *Unwinder) cfa(row *Row) (uint64, failure) {
	r := &row.cfa
	if r.kind != ruleRegPlusOff {
		return u.eval(row.expr(r), &u.regs, u.mod.table.big)
	}
	if !u.regs.has(r.src) {
		return 0, u.missing()
	}
	return u.mask(u.regs.v[r.src] + uint64(r.off)), failNone
}

// value computes what a register rule yields; regs are the callee's.
func (u *Unwinder) value(row *Row, r *rule, cfa uint64, regs *registers) (uint64, failure) {
	reg := r.reg
	switch r.kind {
	case ruleOffset:
		return u.read(u.mask(cfa + uint64(r.off)))
	case ruleValOffset:
		return u.mask(cfa + uint64(r.off)), failNone
	case ruleExpr:
		at, fail := u.eval(row.expr(r), regs, u.mod.table.big, cfa)
		if fail != failNone {
			return 0, fail
		}
		return u.read(at)
	case ruleValExpr:
		return u.eval(row.expr(r), regs, u.mod.table.big, cfa)
	case ruleUndefined:
		return 0, failRegister
	case ruleRegister:
		reg = r.src
	}
	if !regs.has(reg) {
		return 0, u.missing()
	}
	return regs.v[reg], failNone
}

// missing says why a register is not known: it may be that a frame further in
// saved it beyond the copied part of the stack.
func (u *Unwinder) missing() failure {
	if u.lost == failShort {
		return failShort
	}
	return failRegister
}

// restore turns the registers into the caller's. It reports whether the
// caller's sp is the CFA, as it is unless a rule says otherwise.
func (u *Unwinder) restore(row *Row, cfa uint64) (spIsCFA bool) {
	callee := &u.regs
	if !row.plain {
		u.old = u.regs
		callee = &u.old
	}
	u.regs.set(u.arch.sp, cfa)
	spIsCFA = true
	for i := range row.rules {
		r := &row.rules[i]
		spIsCFA = spIsCFA && r.reg != u.arch.sp
		v, fail := u.value(row, r, cfa, callee)
		if fail != failNone {
			u.regs.forget(r.reg)
			if fail == failShort {
				u.lost = fail
			}
			continue
		}
		u.regs.set(r.reg, v)
	}
	return spIsCFA
}

// userBits are the bits of a user address on AArch64; those above may hold a
// pointer authentication code (Documentation/arch/arm64/pointer-authentication.rst).
// Programs get addresses of more bits only if they ask for them.
const userBits = 48

// stripPAC removes the authentication code of a return address.
func (u *Unwinder) stripPAC(ra uint64, signed bool) uint64 {
	if u.arch.hasLR && (signed || ra>>52 != 0) {
		return ra & (1<<userBits - 1)
	}
	return ra
}

func (u *Unwinder) mask(v uint64) uint64 {
	if u.arch.word == 4 {
		return v & (1<<32 - 1)
	}
	return v
}

// read returns the word at addr.
func (u *Unwinder) read(addr uint64) (uint64, failure) {
	if off := addr - u.base; off < uint64(len(u.stack)) && uint64(len(u.stack))-off >= 8 && u.arch.word == 8 {
		return binary.LittleEndian.Uint64(u.stack[off:]), failNone
	}
	return u.readSize(addr, u.arch.word)
}

// maxStackSize is how far above the stack pointer an address can be and still
// be taken for one of the same stack: the usual limit is 8 MiB.
const maxStackSize = 1 << 30

// readSize returns size bytes at addr, from the copied stack or the read-only
// part of an object.
func (u *Unwinder) readSize(addr uint64, size int) (uint64, failure) {
	n := uint64(len(u.stack))
	off := addr - u.base
	if off < n && n-off >= uint64(size) {
		return decodeUint(u.stack[off:off+uint64(size)], false), failNone
	}
	if m, vaddr, ok := u.space.Find(addr); ok && m != nil {
		var buf [8]byte
		if m.src.ReadVaddr(buf[:size], vaddr) == size {
			return decodeUint(buf[:size], false), failNone
		}
	}
	if off < maxStackSize && u.full {
		return 0, failShort
	}
	return 0, failRange
}
