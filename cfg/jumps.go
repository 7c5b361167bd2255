package cfg

import (
	"encoding/binary"
	"strings"

	"github.com/perfcorrect/perfcorrect/image/x86"
	"golang.org/x/arch/x86/x86asm"
)

// addColdPart adds the code around target to the function if it is a part of
// it that the compiler moved away: GCC and LLVM name such parts NAME.cold, and
// without names they are known by jumping back into the middle of the function.
func (d *decoder) addColdPart(target uint64) bool {
	entry, end, name, ok := d.code.Function(target)
	if !ok || end <= entry {
		return false
	}
	if !strings.Contains(name, ".cold") && (name != "" || !d.jumpsBack(entry, end)) {
		return false
	}
	d.g.Ranges = append(d.g.Ranges, Range{entry, end})
	d.load(len(d.g.Ranges) - 1)
	return true
}

// jumpsBack reports whether straight-line decoding of [start, end) meets a
// jump into the function behind its entry.
func (d *decoder) jumpsBack(start, end uint64) bool {
	const most = 4096
	b := d.code.Bytes(start, int(min(end-start, most)))
	for pc := start; pc-start < uint64(len(b)); {
		in, err := x86.Decode(b[pc-start:], pc)
		if err != nil {
			return false
		}
		if (in.Control == x86.Jump || in.Control == x86.CondJump) && in.Target != d.g.Entry && d.inside(in.Target) {
			return true
		}
		pc = in.End()
	}
	return false
}

// indirectJump returns the targets of an indirect jump: those of a jump table
// if one is recognised, else leave, with a doubt unless it is a tail call
// (through a register or memory outside any table, at the end of a frame that
// has been taken down).
func (d *decoder) indirectJump(in *x86.Inst) []uint64 {
	if t := d.jumpTable(in); t != nil {
		return t
	}
	if d.looksLikeTailCall(in) {
		d.calls = append(d.calls, Call{Site: in.PC, Tail: true})
		return []uint64{leave}
	}
	d.doubt(in.PC, "indirect jump whose targets are not known")
	return []uint64{leave}
}

// before returns up to n instructions that come before pc in a straight line,
// newest first.
func (d *decoder) before(pc uint64, n int) []x86.Inst {
	var list []x86.Inst
	for len(list) < n {
		found := false
		for back := uint64(1); back <= 15 && back <= pc; back++ {
			if in, ok := d.insts[pc-back]; ok && in.End() == pc {
				list = append(list, in)
				pc, found = pc-back, true
				break
			}
		}
		if !found {
			break
		}
	}
	return list
}

// looksLikeTailCall reports whether the frame is gone when the jump is taken:
// registers are popped, the stack pointer is raised, or nothing was ever
// pushed; and whether the jump goes through memory or a register that was
// loaded as a pointer, not computed from a table.
func (d *decoder) looksLikeTailCall(in *x86.Inst) bool {
	if m, ok := in.Asm.Args[0].(x86asm.Mem); ok && m.Index != 0 {
		return false
	}
	for i, b := range d.before(in.PC, 8) {
		switch b.Asm.Op {
		case x86asm.POP, x86asm.LEAVE:
			return true
		case x86asm.ADD:
			if b.Asm.Args[0] == x86asm.RSP {
				return true
			}
			if i < 2 && b.Asm.Args[0] == in.Asm.Args[0] {
				return false // base + offset of a table
			}
		case x86asm.MOVSXD:
			return false
		}
	}
	for _, o := range d.insts {
		if o.PC < in.PC && (o.Asm.Op == x86asm.PUSH || o.Asm.Op == x86asm.SUB && o.Asm.Args[0] == x86asm.RSP) {
			return false
		}
	}
	return true
}

// table is a jump table found by its pattern.
type table struct {
	at    uint64
	wide  bool   // 8-byte addresses, else 4-byte offsets from base
	base  uint64 // what the offsets count from
	index x86asm.Reg
}

// maxTable bounds the entries of one jump table.
const maxTable = 1 << 16

// jumpTable recognises the two ways compilers jump through tables:
//
//	lea table(%rip),%b ; movslq (%b,%i,4),%t ; add %b,%t ; jmp *%t      (GCC, LLVM, position independent)
//	jmp *table(,%i,8)                or  lea table(%rip),%b ; jmp *(%b,%i,8)  (absolute addresses; Go)
//
// and reads the targets: as many as the comparison before the jump allows, and
// no more than lie in the function.
func (d *decoder) jumpTable(in *x86.Inst) []uint64 {
	prev := d.before(in.PC, 40)
	t, ok := d.relativeTable(in, prev)
	if !ok {
		t, ok = d.absoluteTable(in, prev)
	}
	if !ok {
		return nil
	}
	n, bounded := d.bound(in.PC, t.index)
	if !bounded {
		n = maxTable
	}
	targets := d.readTable(t, n)
	if len(targets) == 0 || bounded && len(targets) < n {
		return nil
	}
	if !bounded {
		d.doubt(in.PC, "jump table of unknown length")
	}
	return unique(targets)
}

func (d *decoder) relativeTable(in *x86.Inst, prev []x86.Inst) (t table, ok bool) {
	reg, isReg := in.Asm.Args[0].(x86asm.Reg)
	if !isReg {
		return t, false
	}
	var base x86asm.Reg
	stage := 0
	for _, p := range prev {
		switch {
		case stage == 0 && p.Asm.Op == x86asm.ADD && p.Asm.Args[0] == reg:
			base, _ = p.Asm.Args[1].(x86asm.Reg)
			stage = 1
		case stage == 1 && p.Asm.Op == x86asm.MOVSXD:
			m, isMem := p.Asm.Args[1].(x86asm.Mem)
			dst, _ := p.Asm.Args[0].(x86asm.Reg)
			if !isMem || m.Scale != 4 || m.Disp != 0 || dst != reg && dst != base {
				return t, false
			}
			t.index, base = m.Index, m.Base // the sum may be written either way round
			stage = 2
		case stage == 2 && p.Asm.Op == x86asm.LEA && p.Asm.Args[0] == base:
			if t.at, ok = p.RIP(); ok {
				t.base = t.at
				return t, true
			}
			return t, false
		}
	}
	if stage == 2 {
		return d.hoisted(t, base)
	}
	return t, false
}

// hoisted looks for the table's address further up: compilers load it once
// before a loop. It counts if only one lea in the function loads the register.
func (d *decoder) hoisted(t table, base x86asm.Reg) (table, bool) {
	found := 0
	for _, in := range d.insts {
		if in.Asm.Op == x86asm.LEA && in.Asm.Args[0] == base {
			if at, ok := in.RIP(); ok && (found == 0 || at != t.at) {
				t.at, t.base = at, at
				found++
			}
		}
	}
	return t, found == 1
}

func (d *decoder) absoluteTable(in *x86.Inst, prev []x86.Inst) (t table, ok bool) {
	m, isMem := in.Asm.Args[0].(x86asm.Mem)
	if !isMem || m.Scale != 8 || m.Index == 0 {
		return t, false
	}
	t.wide, t.index = true, m.Index
	if m.Base == 0 {
		t.at = uint64(m.Disp)
		return t, true
	}
	for _, p := range prev {
		if p.Asm.Op == x86asm.LEA && p.Asm.Args[0] == m.Base {
			if t.at, ok = p.RIP(); ok {
				t.at += uint64(m.Disp)
			}
			return t, ok
		}
	}
	return t, false
}

// bound finds how many entries the table has: cmp $N,%i ; ja elsewhere means
// N+1 of them, jae means N. The comparison may be of a narrower view of the
// register, or of the one it was copied from.
func (d *decoder) bound(pc uint64, index x86asm.Reg) (n int, ok bool) {
	above := -1 // what ja or jae adds
	family := regFamily(index)
	for _, p := range d.before(pc, 40) {
		switch p.Asm.Op {
		case x86asm.JA:
			above = 1
		case x86asm.JAE:
			above = 0
		case x86asm.CMP:
			r, isReg := p.Asm.Args[0].(x86asm.Reg)
			imm, isImm := p.Asm.Args[1].(x86asm.Imm)
			if isReg && isImm && above >= 0 && regFamily(r) == family && imm >= 0 && imm < maxTable {
				return int(imm) + above, true
			}
		case x86asm.AND:
			r, isReg := p.Asm.Args[0].(x86asm.Reg)
			imm, isImm := p.Asm.Args[1].(x86asm.Imm)
			if isReg && isImm && regFamily(r) == family && imm > 0 && imm < maxTable && imm&(imm+1) == 0 {
				return int(imm) + 1, true
			}
		case x86asm.MOV, x86asm.MOVZX, x86asm.MOVSXD, x86asm.MOVSX:
			dst, _ := p.Asm.Args[0].(x86asm.Reg)
			src, isReg := p.Asm.Args[1].(x86asm.Reg)
			if regFamily(dst) == family && isReg {
				family = regFamily(src)
			} else if p.Asm.Op == x86asm.MOVZX && regFamily(dst) == family && above < 0 && p.Asm.MemBytes == 1 {
				return 256, true
			}
		}
	}
	return 0, false
}

// regFamily maps the views of a register (al, ax, eax, rax) to one number.
func regFamily(r x86asm.Reg) int {
	switch {
	case r >= x86asm.RAX && r <= x86asm.R15:
		return int(r - x86asm.RAX)
	case r >= x86asm.EAX && r <= x86asm.R15L:
		return int(r - x86asm.EAX)
	case r >= x86asm.AX && r <= x86asm.R15W:
		return int(r - x86asm.AX)
	case r >= x86asm.AL && r <= x86asm.BL:
		return int(r - x86asm.AL)
	case r >= x86asm.SPB && r <= x86asm.R15B:
		return int(r-x86asm.SPB) + 4
	}
	return -1 - int(r)
}

// readTable reads up to n entries and stops before one that leaves the function.
func (d *decoder) readTable(t table, n int) []uint64 {
	size := 4
	if t.wide {
		size = 8
	}
	b := d.code.Bytes(t.at, n*size)
	var targets []uint64
	for ; len(b) >= size && len(targets) < n; b = b[size:] {
		target := t.base + uint64(int64(int32(binary.LittleEndian.Uint32(b))))
		if t.wide {
			target = binary.LittleEndian.Uint64(b)
		}
		if !d.inside(target) && !d.addColdPart(target) {
			break
		}
		targets = append(targets, target)
	}
	return targets
}

func unique(list []uint64) []uint64 {
	seen := map[uint64]bool{}
	var out []uint64
	for _, x := range list {
		if !seen[x] {
			seen[x] = true
			out = append(out, x)
		}
	}
	return out
}
