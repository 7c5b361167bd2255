package image

import (
	"errors"

	"golang.org/x/arch/x86/x86asm"
)

var errNotCode = errors.New("not an instruction")

// DecodeX86 decodes one 64-bit x86 instruction. It is x86asm.Decode without
// its known faults (golang.org/x/arch v0.32.0): hint instructions it does not
// know (ENDBR64 and other forms of 0F 1E) come out as one byte long with
// operation 0, VEX instructions without operands (VZEROUPPER, VZEROALL) one
// byte too long, and code cut short may panic. An instruction whose length
// alone is known has Op 0.
func DecodeX86(code []byte) (inst x86asm.Inst, err error) {
	defer func() {
		if recover() != nil {
			inst, err = x86asm.Inst{}, errNotCode
		}
	}()
	if n := hintLength(code); n > 0 {
		return x86asm.Inst{Len: n, Mode: 64}, nil
	}
	if n := vzeroLength(code); n > 0 {
		return x86asm.Inst{Len: n, Mode: 64}, nil
	}
	inst, err = x86asm.Decode(code, 64)
	if err == nil && (inst.Op == 0 || inst.Len <= 0 || inst.Len > len(code)) {
		err = errNotCode
	}
	if err != nil {
		if n := max(vexLength(code), escapeLength(code)); n > 0 {
			return x86asm.Inst{Len: n, Mode: 64}, nil
		}
	}
	return inst, err
}

// escapeLength is the length of an instruction of the maps 0F 01, 0F 38 (a
// ModRM operand) and 0F 3A (ModRM and one byte), else 0: what is new there
// (RDPKRU, GFNI, SHA...) has no other form and does not branch.
func escapeLength(b []byte) int {
	i := prefixLength(b)
	if i+3 > len(b) || b[i] != 0x0f {
		return 0
	}
	operand, immediate := i+3, 0
	switch b[i+1] {
	case 0x01:
		operand = i + 2
	case 0x38:
	case 0x3a:
		immediate = 1
	default:
		return 0
	}
	n := modRMLength(b[operand:])
	if n == 0 || operand+n+immediate > len(b) {
		return 0
	}
	return operand + n + immediate
}

// prefixLength counts legacy and REX prefixes.
func prefixLength(b []byte) int {
	i := 0
	for i < len(b) && i < 14 && (isLegacyPrefix(b[i]) || b[i]&0xf0 == 0x40) {
		i++
	}
	return i
}

// hintLength is the length of an instruction of the reserved-nop space 0F
// 18..1F with any prefixes (ENDBR64, RDSSP, multi-byte nops), else 0.
func hintLength(b []byte) int {
	i := prefixLength(b)
	if i+2 >= len(b) || b[i] != 0x0f || b[i+1] < 0x18 || b[i+1] > 0x1f {
		return 0
	}
	n := modRMLength(b[i+2:])
	if n == 0 || i+2+n > len(b) {
		return 0
	}
	return i + 2 + n
}

func isLegacyPrefix(c byte) bool {
	switch c {
	case 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3:
		return true
	}
	return false
}

// vzeroLength recognises VZEROUPPER and VZEROALL in both VEX forms.
func vzeroLength(b []byte) int {
	switch {
	case len(b) >= 3 && b[0] == 0xc5 && b[2] == 0x77:
		return 3
	case len(b) >= 4 && b[0] == 0xc4 && b[1]&0x1f == 1 && b[3] == 0x77:
		return 4
	}
	return 0
}

// modRMLength is the length of a ModRM byte with its SIB and displacement
// (Intel SDM volume 2, section 2.1.5), 0 if it is cut short.
func modRMLength(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	mod, rm := b[0]>>6, b[0]&7
	n := 1
	if mod != 3 && rm == 4 {
		if len(b) < 2 {
			return 0
		}
		n++
		if mod == 0 && b[1]&7 == 5 {
			n += 4
		}
	}
	switch {
	case mod == 1:
		n++
	case mod == 2, mod == 0 && rm == 5:
		n += 4
	}
	if n > len(b) {
		return 0
	}
	return n
}

// vexLength is the length of a VEX or EVEX instruction (SDM volume 2,
// sections 2.3 and 2.7) that x86asm has no table for. None of them branches,
// so the length is all that is wanted. In map 1 the opcodes with an immediate
// are 70-73, C2, C4-C6; in map 2 none; in map 3 all.
func vexLength(b []byte) int {
	i, opmap := 0, byte(0)
	switch {
	case len(b) > 3 && b[0] == 0xc5:
		i, opmap = 2, 1
	case len(b) > 4 && b[0] == 0xc4:
		i, opmap = 3, b[1]&0x1f
	case len(b) > 5 && b[0] == 0x62:
		i, opmap = 4, b[1]&7
	default:
		return 0
	}
	op := b[i]
	n := modRMLength(b[i+1:])
	if n == 0 || opmap == 0 {
		return 0
	}
	n += i + 1
	switch {
	case opmap == 3,
		opmap == 1 && (op >= 0x70 && op <= 0x73 || op == 0xc2 || op >= 0xc4 && op <= 0xc6):
		n++
	}
	if n > len(b) {
		return 0
	}
	return n
}
