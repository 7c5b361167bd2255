package x86

// knownLength returns the length of instructions that x86asm 0.32 gets wrong
// or does not know, none of which changes the flow of control, and 0 for all
// others:
//
//   - endbr64 and the other hint NOPs with F3 (CET, rdssp): decoded as one byte;
//   - 0F 01 with a register ModRM (rdpkru, xgetbv, swapgs...): partly unknown;
//   - everything with a VEX or EVEX prefix (AVX to AVX-512, BMI): vzeroupper is
//     decoded as four bytes instead of three, most others not at all.
//
// Lengths follow the Intel SDM, volume 2, sections 2.1 to 2.3 and 2.7.
func knownLength(code []byte) int {
	i := 0
	for i < len(code) && i < 14 && legacyPrefix(code[i]) {
		i++
	}
	if i >= len(code) {
		return 0
	}
	if code[i]&0xf0 == 0x40 && i+1 < len(code) { // REX, never before VEX
		if f3(code[:i]) && hintNop(code[i+1:]) {
			return withModRM(code, i+3)
		}
		return 0
	}
	switch code[i] {
	case 0x0f:
		if f3(code[:i]) && hintNop(code[i:]) {
			return withModRM(code, i+2)
		}
		if i+2 < len(code) && code[i+1] == 0x01 && code[i+2] >= 0xc0 {
			return i + 3
		}
	case 0xc5:
		if i+2 < len(code) {
			return vexLength(code, i+2, 1)
		}
	case 0xc4:
		if i+3 < len(code) {
			return vexLength(code, i+3, code[i+1]&0x1f)
		}
	case 0x62:
		if i+4 < len(code) {
			return vexLength(code, i+4, code[i+1]&7)
		}
	}
	return 0
}

func legacyPrefix(b byte) bool {
	switch b {
	case 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3:
		return true
	}
	return false
}

func f3(prefixes []byte) bool {
	for _, p := range prefixes {
		if p == 0xf3 {
			return true
		}
	}
	return false
}

// hintNop reports whether the bytes are 0F 1E /r, of which F3 makes endbr64,
// endbr32 and rdssp.
func hintNop(b []byte) bool { return len(b) >= 3 && b[0] == 0x0f && b[1] == 0x1e }

// vexLength is the length of an instruction whose opcode is at op and is
// looked up in map m: every one has a ModRM byte but vzeroupper and vzeroall.
func vexLength(code []byte, op int, m byte) int {
	if m == 1 && code[op] == 0x77 {
		return op + 1
	}
	n := withModRM(code, op+1)
	if n == 0 {
		return 0
	}
	if hasImm8(m, code[op]) {
		n++
	}
	if n > len(code) || n > 15 {
		return 0
	}
	return n
}

// hasImm8 reports whether an AVX opcode has an 8-bit immediate: all of map 3
// (0F 3A), and of map 1 (0F) the shifts by a constant, shuffles, compares,
// inserts and extracts.
func hasImm8(m, op byte) bool {
	if m == 3 {
		return true
	}
	if m != 1 {
		return false
	}
	switch op {
	case 0x70, 0x71, 0x72, 0x73, 0xc2, 0xc4, 0xc5, 0xc6:
		return true
	}
	return false
}

// withModRM is the length up to and including the ModRM byte at offset at, its
// SIB byte and displacement (64-bit addressing).
func withModRM(code []byte, at int) int {
	if at >= len(code) {
		return 0
	}
	mod, rm := code[at]>>6, code[at]&7
	n := at + 1
	if mod == 3 {
		return n
	}
	if rm == 4 {
		if n >= len(code) {
			return 0
		}
		if mod == 0 && code[n]&7 == 5 {
			n += 4
		}
		n++
	}
	switch {
	case mod == 1:
		n++
	case mod == 2, mod == 0 && rm == 5:
		n += 4
	}
	if n > len(code) {
		return 0
	}
	return n
}
