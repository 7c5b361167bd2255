// Package x86 decodes x86-64 instructions as far as control flow needs it:
// how long an instruction is and where it goes. It is the one place that
// calls golang.org/x/arch/x86/x86asm, whose known faults it mends.
package x86

import (
	"errors"

	"golang.org/x/arch/x86/x86asm"
)

// Control says what an instruction does to the flow of control.
type Control uint8

const (
	Next         Control = iota // goes on behind itself
	Jump                        // direct, unconditional
	CondJump                    // direct, conditional (also loop, jrcxz)
	IndirectJump                // through a register or memory
	Call                        // direct
	IndirectCall                // through a register or memory
	Return
	Trap // ud2, hlt, int3: never goes on
)

// Inst is one instruction at address PC.
type Inst struct {
	PC      uint64
	Len     int
	Control Control
	Target  uint64 // of a direct jump or call

	// Asm is the instruction as x86asm sees it; its Len may be wrong, and Op
	// is 0 where x86asm does not know the instruction.
	Asm x86asm.Inst
}

// End is the address behind the instruction.
func (i *Inst) End() uint64 { return i.PC + uint64(i.Len) }

// IsCall reports whether the instruction is a call of either kind.
func (i *Inst) IsCall() bool { return i.Control == Call || i.Control == IndirectCall }

// RIP returns the address of a memory operand relative to the instruction
// pointer, if the instruction has one.
func (i *Inst) RIP() (addr uint64, ok bool) {
	for _, a := range i.Asm.Args {
		if m, is := a.(x86asm.Mem); is && m.Base == x86asm.RIP {
			return i.End() + uint64(m.Disp), true
		}
	}
	return 0, false
}

// ErrUnknown is returned for bytes that are no instruction this package knows.
var ErrUnknown = errors.New("x86: unknown instruction")

// Decode decodes the first instruction of code, which lies at address pc.
func Decode(code []byte, pc uint64) (Inst, error) {
	if n := knownLength(code); n > 0 {
		return Inst{PC: pc, Len: n}, nil
	}
	asm, err := decode(code)
	if err != nil || asm.Op == 0 || asm.Len == 0 {
		return Inst{}, ErrUnknown
	}
	in := Inst{PC: pc, Len: asm.Len, Asm: asm}
	in.Control = control(&asm)
	if rel, ok := asm.Args[0].(x86asm.Rel); ok {
		in.Target = in.End() + uint64(int64(rel))
	}
	return in, nil
}

// decode contains x86asm: version 0.31 panicked on a truncated VEX prefix.
func decode(code []byte) (in x86asm.Inst, err error) {
	defer func() {
		if recover() != nil {
			err = ErrUnknown
		}
	}()
	return x86asm.Decode(code, 64)
}

// control classifies an instruction x86asm decoded.
func control(in *x86asm.Inst) Control {
	_, direct := in.Args[0].(x86asm.Rel)
	switch in.Op {
	case x86asm.JMP:
		if direct {
			return Jump
		}
		return IndirectJump
	case x86asm.LJMP:
		return IndirectJump
	case x86asm.CALL:
		if direct {
			return Call
		}
		return IndirectCall
	case x86asm.LCALL:
		return IndirectCall
	case x86asm.RET, x86asm.LRET, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ, x86asm.SYSRET, x86asm.SYSEXIT:
		return Return
	case x86asm.UD1, x86asm.UD2, x86asm.HLT, x86asm.INT:
		return trap(in)
	}
	if direct { // every other instruction with a relative operand is conditional; xbegin is too
		return CondJump
	}
	return Next
}

// trap tells int3, which ends a function or fills the space behind one, from
// system calls by int.
func trap(in *x86asm.Inst) Control {
	if n, ok := in.Args[0].(x86asm.Imm); in.Op == x86asm.INT && ok && n != 3 {
		return Next
	}
	return Trap
}

// Conditional reports whether control may also go on behind the instruction.
func (c Control) Conditional() bool { return c == CondJump }
