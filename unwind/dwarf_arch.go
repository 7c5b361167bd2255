package unwind

import "github.com/perfcorrect/perfcorrect/perfdata"

// arch is what the unwinder knows of an instruction set. Registers are
// numbered as DWARF does: System V ABI for x86-64 (table 3.36) and i386 (table
// 2.14), DWARF for the Arm 64-bit Architecture (section 4.1).
type arch struct {
	name           string
	word           int // bytes of an address
	pc, sp, fp, lr uint8
	hasLR          bool    // calls leave the return address in lr, not on the stack
	fromPerf       []uint8 // perf's register number (uapi/asm/perf_regs.h) to DWARF's
}

const noReg = 0xff

var archX86 = &arch{
	name: "x86_64", word: 8, pc: 16, sp: 7, fp: 6,
	fromPerf: []uint8{
		0, 3, 2, 1, 4, 5, 6, 7, 16, // ax bx cx dx si di bp sp ip
		noReg, noReg, noReg, noReg, noReg, noReg, noReg, // flags cs ss ds es fs gs
		8, 9, 10, 11, 12, 13, 14, 15,
	},
}

var archI386 = &arch{
	name: "i386", word: 4, pc: 8, sp: 4, fp: 5,
	fromPerf: []uint8{0, 3, 1, 2, 6, 7, 5, 4, 8},
}

var archARM64 = &arch{
	name: "aarch64", word: 8, pc: 32, sp: 31, fp: 29, lr: 30, hasLR: true,
	fromPerf: []uint8{
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
		20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
	},
}

// registers are the registers of one frame, by DWARF number.
type registers struct {
	v     [maxRegs]uint64
	known uint64 // bit n: v[n] is the value in this frame
}

func (r *registers) set(n uint8, v uint64) {
	r.v[n] = v
	r.known |= 1 << n
}

func (r *registers) forget(n uint8) { r.known &^= 1 << n }

func (r *registers) has(n uint8) bool { return r.known>>n&1 != 0 }

// load takes over the registers perf dumped.
func (r *registers) load(a *arch, regs *perfdata.Regs) {
	r.known = 0
	i := 0
	for n, mask := 0, regs.Mask; mask != 0 && i < len(regs.Values); n, mask = n+1, mask>>1 {
		if mask&1 == 0 {
			continue
		}
		if n < len(a.fromPerf) && a.fromPerf[n] != noReg {
			v := regs.Values[i]
			if a.word == 4 {
				v &= 1<<32 - 1
			}
			r.set(a.fromPerf[n], v)
		}
		i++
	}
}

// archOf chooses by the recording's machine (uname -m) and the ABI of the
// sample's registers (PERF_SAMPLE_REGS_ABI_*: 1 is 32 bit, 2 is 64 bit).
// 32-bit Arm programs and other machines have none.
func archOf(machine string, abi uint64) *arch {
	switch machine {
	case "x86_64", "amd64":
		if abi == 1 {
			return archI386
		}
		return archX86
	case "i386", "i486", "i586", "i686":
		return archI386
	case "aarch64", "arm64":
		if abi == 2 {
			return archARM64
		}
	}
	return nil
}
