package unwind

import "testing"

// exprUnwinder has registers r0..r7 of 10, 11... and a stack at stackBase.
func exprUnwinder(word int) *Unwinder {
	u := &Unwinder{arch: archX86, base: stackBase, stack: words(0x1122334455667788, 0x99), space: oneModule{NewModule(sectionsOnly{})}, bias: 0x100}
	if word == 4 {
		u.arch = archI386
	}
	for i := range uint8(8) {
		u.regs.set(i, uint64(10+i))
	}
	u.regs.set(7, stackBase)
	return u
}

func TestExpressions(t *testing.T) {
	tests := []struct {
		name string
		expr []byte
		want uint64
		fail failure
	}{
		{"literal", []byte{opLit0 + 31}, 31, failNone},
		{"address", []byte{opAddr, 0x10, 0, 0, 0, 0, 0, 0, 0}, 0x110, failNone},
		{"const1s", []byte{opConst1u + 1, 0xff}, 1<<64 - 1, failNone},
		{"const2u", []byte{opConst1u + 2, 0x34, 0x12}, 0x1234, failNone},
		{"const4s", []byte{opConst1u + 5, 0xfe, 0xff, 0xff, 0xff}, 1<<64 - 2, failNone},
		{"const8u", []byte{opConst1u + 6, 1, 2, 3, 4, 5, 6, 7, 8}, 0x0807060504030201, failNone},
		{"constu", []byte{opConstu, 0x80, 1}, 128, failNone},
		{"consts", []byte{opConsts, 0x7f}, 1<<64 - 1, failNone},
		{"breg", []byte{opBreg0 + 3, 0x7c}, 9, failNone},
		{"bregx", []byte{opBregx, 3, 4}, 17, failNone},
		{"regx", []byte{opRegx, 3}, 13, failNone},
		{"unknown register", []byte{opBreg0 + 9, 0}, 0, failRegister},
		{"deref", []byte{opBreg0 + 7, 0, opDeref}, 0x1122334455667788, failNone},
		{"deref_size", []byte{opBreg0 + 7, 1, opDerefSize, 2}, 0x6677, failNone},
		{"deref beyond", []byte{opBreg0 + 7, 9, opDeref}, 0, failRange},
		{"deref_size 9", []byte{opBreg0 + 7, 0, opDerefSize, 9}, 0, failMalformed},
		{"dup plus", []byte{opLit0 + 4, opDup, opPlus}, 8, failNone},
		{"over minus", []byte{opLit0 + 9, opLit0 + 4, opOver, opMinus}, 1<<64 - 5, failNone},
		{"pick", []byte{opLit0 + 9, opLit0 + 4, opLit0 + 1, opPick, 2}, 9, failNone},
		{"swap minus", []byte{opLit0 + 4, opLit0 + 9, opSwap, opMinus}, 5, failNone},
		{"rot", []byte{opLit0 + 1, opLit0 + 2, opLit0 + 3, opRot, opDrop}, 1, failNone},
		{"drop", []byte{opLit0 + 1, opLit0 + 2, opDrop}, 1, failNone},
		{"abs", []byte{opConsts, 0x7b, opAbs}, 5, failNone},
		{"neg not", []byte{opLit0 + 5, opNeg, opNot}, 4, failNone},
		{"plus_uconst", []byte{opLit0 + 5, opPlusUconst, 0x80, 1}, 133, failNone},
		{"signed div", []byte{opConsts, 0x7a, opLit0 + 2, opDiv}, 1<<64 - 3, failNone},
		{"mod", []byte{opLit0 + 17, opLit0 + 5, opMod}, 2, failNone},
		{"div by zero", []byte{opLit0 + 17, opLit0, opDiv}, 0, failMalformed},
		{"mul and or xor", []byte{opLit0 + 5, opLit0 + 3, opMul, opLit0 + 14, opAnd, opLit0 + 1, opOr, opLit0 + 2, opXor}, 13, failNone},
		{"shl shr", []byte{opLit0 + 5, opLit0 + 4, opShl, opLit0 + 1, opShr}, 40, failNone},
		{"shra", []byte{opConsts, 0x70, opLit0 + 2, opShra}, 1<<64 - 4, failNone},
		{"shift by 64", []byte{opLit0 + 5, opConst1u, 64, opShl}, 0, failNone},
		{"compare signed", []byte{opConsts, 0x7f, opLit0, opEq + 4}, 1, failNone},
		{"ge", []byte{opLit0 + 3, opLit0 + 3, opEq + 1}, 1, failNone},
		{"ne", []byte{opLit0 + 3, opLit0 + 3, opNe}, 0, failNone},
		{"skip", []byte{opLit0 + 3, opSkip, 1, 0, opDrop}, 3, failNone},
		{"bra taken", []byte{opLit0 + 3, opLit0 + 1, opBra, 1, 0, opDrop}, 3, failNone},
		{"bra not taken", []byte{opLit0 + 3, opLit0 + 4, opLit0, opBra, 1, 0, opDrop}, 3, failNone},
		{"endless loop", []byte{opSkip, 0xfd, 0xff}, 0, failMalformed},
		{"jump out", []byte{opSkip, 0, 0x7f}, 0, failMalformed},
		{"empty", nil, 0, failMalformed},
		{"underflow", []byte{opPlus}, 0, failMalformed},
		{"overflow", append([]byte{opLit0}, []byte("\x12\x12\x2f\xfb\xff")...), 0, failMalformed},
		{"truncated", []byte{opConst1u + 6, 1}, 0, failMalformed},
		{"no operation", []byte{0xff}, 0, failMalformed},
		// The PLT of GNU ld: CFA = rsp + 8 + ((rip & 15) >= 11) << 3; r16 is set below.
		{"plt", []byte{opBreg0 + 7, 8, opBregx, 16, 0, opLit0 + 15, opAnd, opLit0 + 11, opEq + 1, opLit0 + 3, opShl, opPlus}, stackBase + 16, failNone},
	}
	for _, test := range tests {
		u := exprUnwinder(8)
		u.regs.set(16, 0x100b)
		v, fail := u.eval(test.expr, &u.regs, false)
		if v != test.want || fail != test.fail {
			t.Errorf("%s: %#x (%d), want %#x (%d)", test.name, v, fail, test.want, test.fail)
		}
	}
	u := exprUnwinder(4)
	if v, _ := u.eval([]byte{opLit0, opLit0 + 1, opMinus}, &u.regs, false); v != 1<<32-1 {
		t.Errorf("32 bit: 0-1 is %#x", v)
	}
	if v, _ := u.eval([]byte{opLit0 + 2, opPlus}, &u.regs, false, 40); v != 42 {
		t.Errorf("initial value: %d", v)
	}
}

func FuzzExpression(f *testing.F) {
	f.Add([]byte{opBreg0 + 7, 8, opBregx, 16, 0, opLit0 + 15, opAnd, opLit0 + 11, opEq + 1, opLit0 + 3, opShl, opPlus})
	f.Add([]byte{opLit0 + 1, opDup, opBra, 0xfc, 0xff})
	f.Add([]byte{opBreg0 + 7, 0, opDeref, opConst8s, 1, 2, 3, 4, 5, 6, 7, 8, opPick, 1, opRot, opDerefSize, 3})
	f.Fuzz(func(t *testing.T, expr []byte) {
		for _, word := range []int{4, 8} {
			u := exprUnwinder(word)
			v, fail := u.eval(expr, &u.regs, false, 7)
			if word == 4 && v > 1<<32-1 {
				t.Errorf("%#x in 32 bits", v)
			}
			if fail != failNone && v != 0 {
				t.Errorf("%#x in spite of failure %d", v, fail)
			}
		}
	})
}
