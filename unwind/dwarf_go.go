package unwind

// Go's toolchain writes call frame information for the CFA and the return
// address alone (cmd/link/internal/ld/dwarf.go, writeframes). Frame pointers
// are kept, but by convention.

// restoreGoFP finds the caller's frame pointer where Go on x86-64 keeps it,
// under the return address of every frame that is not empty
// (cmd/internal/obj/x86/obj6.go, preprocess).
func (u *Unwinder) restoreGoFP(row *Row, cfa uint64) {
	if u.arch != archX86 || row.cfa.kind != ruleRegPlusOff || row.cfa.off < 16 {
		return
	}
	fp, fail := u.read(cfa - 16)
	if fail == failNone && (fp == 0 || fp >= cfa || !u.copied(fp)) {
		u.regs.set(u.arch.fp, fp)
	}
}

// copied reports whether addr is in the copied part of the stack.
func (u *Unwinder) copied(addr uint64) bool { return addr-u.base < uint64(len(u.stack)) }

// goSwitchedStack reports whether the current frame is Go's and its frame
// pointer says that the caller's is on a stack that was not copied:
// runtime.systemstack and its like run functions on the thread's stack and
// leave the frame pointer of the goroutine's in the register
// (runtime/asm_amd64.s). What lies above on the thread's stack is of old calls.
func (u *Unwinder) goSwitchedStack() bool {
	if u.mod == nil || !u.mod.goBin || !u.regs.has(u.arch.fp) {
		return false
	}
	fp := u.regs.v[u.arch.fp]
	return fp != 0 && fp%uint64(u.arch.word) == 0 && !u.copied(fp)
}

// frameless reports whether the current frame is a caller in a Go binary that
// has no frame of its own: a function written in assembly, nearly always one
// of those a thread or goroutine begins with.
func (u *Unwinder) frameless() bool {
	r := u.row
	return !u.exact && u.mod != nil && u.mod.goBin && r != nil &&
		r.cfa.kind == ruleRegPlusOff && r.cfa.src == u.arch.sp && r.cfa.off <= int64(u.arch.word)
}

// goexit reports whether the current frame is runtime.goexit, which every
// goroutine seems to have been called from, behind a first instruction that
// does nothing (runtime/asm_amd64.s, asm_arm64.s). Above it is what the memory
// held before, unless it was zero.
func (u *Unwinder) goexit() bool {
	var code [8]byte
	at := u.vaddr - u.vaddr%4 // instructions of arm64 are aligned, goexit of x86-64 as well
	if u.mod.src.ReadVaddr(code[:], at) != len(code) {
		return false
	}
	switch u.arch {
	case archX86:
		return at == u.vaddr && hasPrefix(code[:], 0x90, 0xe8) && code[6] == 0x90
	case archARM64:
		return decodeUint(code[:4], false) == 0xaa0003e0 && code[7]>>2 == 0x25 // mov x0, x0; bl
	}
	return false
}
