package unwind

// Code without call frame information: hand-written, of JIT compilers, or of
// linkers that write none for their PLT. There the frame pointer is all there
// is to go by, save where the instructions at the leaf's pc are of the few
// that set up or leave a frame (after framehop's instruction analysis).

// withoutCFI goes to the caller without call frame information. why is the
// outcome if there is no way.
func (u *Unwinder) withoutCFI(why Outcome) (more bool, o Outcome) {
	if !u.code && !u.exact {
		return false, Corrupt
	}
	if u.exact && u.byCode() {
		u.Stats.Code++
		return true, EndOfStack
	}
	switch ok, fail := u.byFramePointer(); {
	case ok:
		u.Stats.FramePointer++
		return true, EndOfStack
	case fail == failShort && why == NoCFI:
		return false, DumpTooShort
	}
	if why == NoCFI && u.code && u.outermost() {
		return false, EndOfStack
	}
	return false, why
}

// outermost reports whether the frame pointer says that there is no caller:
// the ABIs ask for a zero there in the first frame.
func (u *Unwinder) outermost() bool {
	return u.regs.has(u.arch.fp) && u.regs.v[u.arch.fp] == 0
}

// byFramePointer follows the frame record: the caller's frame pointer and
// above it the return address. What is found must be plausible, for the
// register may be used for anything else.
func (u *Unwinder) byFramePointer() (ok bool, fail failure) {
	a := u.arch
	if !u.regs.has(a.fp) {
		return false, u.missing()
	}
	word := uint64(a.word)
	fp := u.regs.v[a.fp]
	if fp%word != 0 || u.regs.has(a.sp) && fp < u.regs.v[a.sp] {
		return false, failMalformed
	}
	caller, fail := u.read(fp)
	if fail != failNone {
		return false, fail
	}
	ra, fail := u.read(fp + word)
	if fail != failNone {
		return false, fail
	}
	if !u.returnsTo(ra) || caller != 0 && caller <= fp { // the caller's frame lies above
		return false, failMalformed
	}
	u.goTo(ra)
	u.regs.set(a.fp, caller)
	u.regs.set(a.sp, fp+2*word)
	if a.hasLR { // the record may lie anywhere in the frame
		u.regs.forget(a.sp)
	}
	return true, failNone
}

// returnsTo reports whether ra can be a return address.
func (u *Unwinder) returnsTo(ra uint64) bool {
	ra = u.stripPAC(ra, false)
	if ra == 0 {
		return false
	}
	_, _, ok := u.space.Find(ra - 1)
	return ok
}

// goTo makes the caller at ra the current frame. No other registers are known
// to have been kept, but none to have been lost.
func (u *Unwinder) goTo(ra uint64) {
	u.pc, u.exact = u.stripPAC(ra, false), false
	if u.arch.hasLR {
		u.regs.set(u.arch.lr, u.pc)
	}
}

// byCode recognises the instructions around pc, an instruction being
// executed, and tells where the return address is.
func (u *Unwinder) byCode() bool {
	if u.arch.hasLR {
		return u.byCodeARM64()
	}
	word := uint64(u.arch.word)
	sp := u.regs.v[u.arch.sp]
	at, pushed := u.frameSetUp()
	if !at {
		return false
	}
	if pushed { // the caller's frame pointer, or a word of a PLT entry
		sp += word
	}
	ra, fail := u.read(sp)
	if fail != failNone || !u.returnsTo(ra) {
		return false
	}
	if pushed && u.framePushed() {
		if fp, fail := u.read(sp - word); fail == failNone {
			u.regs.set(u.arch.fp, fp)
		}
	}
	u.goTo(ra)
	u.regs.set(u.arch.sp, sp+word)
	return true
}

// codeAt returns up to 8 bytes of code before pc and 8 from it on.
func (u *Unwinder) codeAt() (before, from []byte) {
	if u.mod == nil || u.vaddr < 8 {
		return nil, nil
	}
	var buf [16]byte
	if u.mod.src.ReadVaddr(buf[:], u.vaddr-8) != len(buf) {
		return nil, nil
	}
	return buf[:8], buf[8:]
}

// frameSetUp recognises x86 code in which the return address is on top of the
// stack, or one word below it (pushed).
func (u *Unwinder) frameSetUp() (ok, pushed bool) {
	if !u.code { // a call through a bad pointer: nothing has run since
		return true, false
	}
	before, from := u.codeAt()
	if from == nil {
		return false, false
	}
	switch {
	case hasPrefix(from, 0xf3, 0x0f, 0x1e, 0xfa), hasPrefix(from, 0xf3, 0x0f, 0x1e, 0xfb): // endbr64, endbr32
		return true, false
	case hasPrefix(from, 0xc3), hasPrefix(from, 0xf3, 0xc3), hasPrefix(from, 0xf2, 0xc3): // ret
		return true, false
	case hasPrefix(from, 0x55, 0x48, 0x89, 0xe5), hasPrefix(from, 0x55, 0x89, 0xe5): // push %rbp; mov %rsp,%rbp
		return true, false
	case u.framePushed(), hasPrefix(from, 0x5d, 0xc3): // push %rbp; | mov %rsp,%rbp and pop %rbp; ret
		return true, true
	case hasPrefix(from, 0xff, 0x25), hasPrefix(from, 0xf2, 0xff, 0x25): // PLT: jmp *slot(%rip)
		return true, false
	case from[0] == 0x68 && from[5] == 0xe9: // PLT: push index; jmp PLT0
		return true, false
	case from[0] == 0xe9 && before[3] == 0x68: // the same, after the push
		return true, true
	}
	return false, false
}

// framePushed recognises mov %rsp,%rbp behind push %rbp, or pop %rbp before ret.
func (u *Unwinder) framePushed() bool {
	before, from := u.codeAt()
	if from == nil {
		return false
	}
	mov := hasPrefix(from, 0x48, 0x89, 0xe5) || hasPrefix(from, 0x89, 0xe5)
	return before[7] == 0x55 && mov || hasPrefix(from, 0x5d, 0xc3)
}

// byCodeARM64 recognises code that has not saved the link register yet, or
// has restored it.
func (u *Unwinder) byCodeARM64() bool {
	if !u.regs.has(u.arch.lr) || !u.returnsTo(u.regs.v[u.arch.lr]) {
		return false
	}
	if u.code {
		_, from := u.codeAt()
		if from == nil {
			return false
		}
		switch ins := decodeUint(from[:4], false); {
		case ins == 0xd65f03c0, ins == 0xd65f0bff, ins == 0xd65f0fff: // ret, retaa, retab
		case ins == 0xd503233f, ins == 0xd503237f: // paciasp, pacibsp
		case ins&0xffffff3f == 0xd503241f: // bti
		case ins&0xffc07fff == 0xa9807bfd: // stp x29, x30, [sp, #-n]!
		default:
			return false
		}
	}
	u.goTo(u.regs.v[u.arch.lr])
	return true
}

func hasPrefix(b []byte, prefix ...byte) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == string(prefix)
}
