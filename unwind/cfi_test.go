package unwind

import (
	"encoding/binary"
	"strings"
	"testing"
)

// asm writes .eh_frame and .debug_frame sections for tests.
type asm struct {
	b    []byte
	addr uint64 // of b[0]
}

func (a *asm) u32(v int) *asm { a.b = binary.LittleEndian.AppendUint32(a.b, uint32(v)); return a }
func (a *asm) u64(v uint64) *asm {
	a.b = binary.LittleEndian.AppendUint64(a.b, v)
	return a
}
func (a *asm) bytes(v ...byte) *asm { a.b = append(a.b, v...); return a }

// entry writes an entry with a length in front, 8 bytes long if wide.
func (a *asm) entry(wide bool, body []byte) (off int) {
	off = len(a.b)
	if wide {
		a.u32(-1).u64(uint64(len(body)))
	} else {
		a.u32(len(body))
	}
	a.bytes(body...)
	return off
}

// x86Program is what every x86-64 CIE does: def_cfa rsp+8, ra at c-8.
var x86Program = []byte{cfaDefCFA, 7, 8, cfaOffset | 16, 1}

// ehFrame makes a .eh_frame at 0x10000 of one CIE (augmentation "zR" + aug,
// absolute 8-byte pointers) and an FDE for [0x1000, 0x1100) with the program.
func ehFrame(aug string, program ...byte) Sections {
	a := asm{addr: 0x10000}
	cie := (&asm{}).u32(0).bytes(1).bytes(append([]byte("zR"+aug), 0)...).bytes(1, 0x78, 16, 1, encAbsptr)
	a.entry(false, cie.bytes(x86Program...).b)
	at := len(a.b) + 4
	fde := (&asm{}).u32(at).u64(0x1000).u64(0x100).bytes(0)
	a.entry(false, fde.bytes(program...).b)
	return Sections{EhFrame: Section{Data: a.b, Addr: a.addr}}
}

func TestPrograms(t *testing.T) {
	tests := []struct {
		name    string
		program []byte
		want    map[uint64]string // by address
	}{
		{"none", nil, map[uint64]string{0xfff: "none", 0x1000: "r7+8 ra:c-8", 0x10ff: "r7+8 ra:c-8", 0x1100: "none"}},
		{"push and mov", []byte{0x41, cfaDefCFAOffset, 16, cfaOffset | 6, 2, 0x43, cfaDefCFARegister, 6}, map[uint64]string{
			0x1000: "r7+8 ra:c-8", 0x1001: "r7+16 r6:c-16 ra:c-8", 0x1003: "r7+16 r6:c-16 ra:c-8", 0x1004: "r6+16 r6:c-16 ra:c-8"}},
		{"long advances", []byte{cfaAdvanceLoc1, 2, cfaDefCFAOffset, 16, cfaAdvanceLoc2, 3, 0, cfaDefCFAOffset, 24, cfaAdvanceLoc4, 4, 0, 0, 0, cfaDefCFAOffset, 32,
			cfaMIPSAdvanceLoc8, 1, 0, 0, 0, 0, 0, 0, 0, cfaDefCFAOffset, 40},
			map[uint64]string{0x1001: "r7+8 ra:c-8", 0x1002: "r7+16 ra:c-8", 0x1005: "r7+24 ra:c-8", 0x1009: "r7+32 ra:c-8", 0x100a: "r7+40 ra:c-8"}},
		{"set_loc", []byte{cfaSetLoc, 0x10, 0x10, 0, 0, 0, 0, 0, 0, cfaDefCFAOffset, 16}, map[uint64]string{0x100f: "r7+8 ra:c-8", 0x1010: "r7+16 ra:c-8"}},
		{"remember and restore", []byte{cfaOffset | 3, 2, cfaRememberState, 0x41, cfaDefCFA, 6, 24, cfaOffset | 12, 3, 0x41, cfaRestoreState}, map[uint64]string{
			0x1000: "r7+8 r3:c-16 ra:c-8", 0x1001: "r6+24 r3:c-16 r12:c-24 ra:c-8", 0x1002: "r7+8 r3:c-16 ra:c-8"}},
		{"restore is the CIE's rule", []byte{cfaOffset | 16, 4, cfaOffset | 3, 2, 0x41, cfaRestore | 16, cfaRestoreExtended, 3}, map[uint64]string{
			0x1000: "r7+8 r3:c-16 ra:c-32", 0x1001: "r7+8 ra:c-8"}},
		{"register rules", []byte{cfaUndefined, 3, cfaSameValue, 6, cfaRegister, 12, 13, cfaOffsetExtended, 14, 3, cfaOffsetExtendedSF, 15, 0x7d,
			cfaGNUNegOffsetExtended, 5, 2}, map[uint64]string{0x1000: "r7+8 r3:u r5:c+16 r6:s r12:r13 r14:c-24 r15:c+24 ra:c-8"}},
		{"val_offset is scaled", []byte{cfaValOffset, 7, 2, cfaValOffsetSF, 6, 0x7e}, map[uint64]string{0x1000: "r7+8 r6:v+16 r7:v-16 ra:c-8"}},
		{"signed CFA", []byte{cfaDefCFASF, 6, 0x7e, 0x41, cfaDefCFAOffsetSF, 0x7f}, map[uint64]string{0x1000: "r6+16 ra:c-8", 0x1001: "r6+8 ra:c-8"}},
		{"expressions", []byte{cfaDefCFAExpression, 2, opBreg0 + 7, 8, cfaExpression, 3, 1, opLit0, cfaValExpression, 6, 1, opLit0}, map[uint64]string{
			0x1000: "exp r3:exp r6:vexp ra:c-8"}},
		{"register after expression", []byte{cfaDefCFAOffset, 56, cfaDefCFAExpression, 1, opLit0, 0x41, cfaDefCFARegister, 6}, map[uint64]string{
			0x1000: "exp ra:c-8", 0x1001: "r6+56 ra:c-8"}},
		{"args_size", []byte{cfaGNUArgsSize, 0x80, 1, cfaNop, cfaDefCFAOffset, 16}, map[uint64]string{0x1000: "r7+16 ra:c-8"}},
		{"vector registers", []byte{cfaOffsetExtended, 60, 2, cfaExpression, 0x80, 8, 1, opLit0}, map[uint64]string{0x1000: "r7+8 ra:c-8"}},

		{"unknown opcode", []byte{0x3f}, map[uint64]string{0x1000: "corrupt"}},
		{"restore without remember", []byte{cfaRestoreState}, map[uint64]string{0x1000: "corrupt"}},
		{"truncated operand", []byte{cfaAdvanceLoc4, 1}, map[uint64]string{0x1000: "corrupt"}},
		{"truncated expression", []byte{cfaExpression, 3, 9, opLit0}, map[uint64]string{0x1000: "corrupt"}},
		{"CFA register unheard of", []byte{cfaDefCFA, 99, 8}, map[uint64]string{0x1000: "corrupt"}},
		{"bottomless remember", []byte(strings.Repeat("\x0a", 1000)), map[uint64]string{0x1000: "corrupt"}},
	}
	for _, test := range tests {
		tab := NewTable(ehFrame("", test.program...))
		for pc, want := range test.want {
			checkRow(t, test.name, tab, pc, want)
		}
	}
}

func checkRow(t *testing.T, name string, tab *Table, pc uint64, want string) {
	t.Helper()
	for range 2 { // from the section, from the cache
		row, corrupt := tab.Row(pc)
		got := "none"
		if corrupt {
			got = "corrupt"
		}
		if row != nil {
			got = row.String()
		}
		if got != want {
			t.Errorf("%s: %#x: %q, want %q (%v)", name, pc, got, want, tab.Stats().FirstError)
		}
	}
}

func TestAugmentations(t *testing.T) {
	for _, aug := range []string{"S", "B", "G", "SB", "?"} {
		tab := NewTable(ehFrame(aug, cfaNop))
		checkRow(t, aug, tab, 0x1000, "r7+8 ra:c-8")
		if row, _ := tab.Row(0x1000); row.Signal() != strings.Contains(aug, "S") {
			t.Errorf("%q: signal frame %v", aug, row.Signal())
		}
	}
	// Personality and LSDA encoding stand between, of any encoding.
	a := asm{addr: 0x10000}
	cie := (&asm{}).u32(0).bytes(3).bytes([]byte("zPLR\x00")...).bytes(1, 0x78, 16, 7, encPCRel|encSdata4|encIndirect, 1, 2, 3, 4, encPCRel|encSdata4, encPCRel|encSdata4)
	a.entry(false, cie.bytes(x86Program...).b)
	fde := len(a.b)
	start := 0x1000 - (0x10000 + fde + 8)
	a.entry(false, (&asm{}).u32(fde+4).u32(start).u32(0x100).bytes(4, 0, 0, 0, 0, cfaDefCFAOffset, 32).b)
	checkRow(t, "zPLR", NewTable(Sections{EhFrame: Section{Data: a.b, Addr: 0x10000}}), 0x1050, "r7+32 ra:c-8")
}

// TestDebugFrame covers what only .debug_frame has: 32- and 64-bit entries,
// version 4 with address and segment sizes, and 32-bit machines.
func TestDebugFrame(t *testing.T) {
	for _, wide := range []bool{false, true} {
		for _, version := range []byte{1, 3, 4} {
			a := asm{}
			id := func(e *asm, v uint64) *asm {
				if wide {
					return e.u64(v)
				}
				return e.u32(int(int32(v)))
			}
			cie := id(&asm{}, ^uint64(0)).bytes(version, 0)
			if version == 4 {
				cie.bytes(8, 0)
			}
			a.entry(wide, cie.bytes(1, 0x78, 16).bytes(x86Program...).b)
			a.entry(wide, id(&asm{}, 0).u64(0x2000).u64(0x10).bytes(cfaDefCFAOffset, 24).b)
			a.entry(wide, id(&asm{}, 0).u64(0x1000).u64(0x10).b)
			tab := NewTable(Sections{DebugFrame: Section{Data: a.b}})
			checkRow(t, "debug_frame", tab, 0x2008, "r7+24 ra:c-8")
			checkRow(t, "debug_frame", tab, 0x1008, "r7+8 ra:c-8")
			checkRow(t, "debug_frame", tab, 0x1010, "none")
		}
	}
	a := asm{}
	a.entry(false, (&asm{}).u32(-1).bytes(1, 0, 1, 0x7c, 8, cfaDefCFA, 4, 4, cfaOffset|8, 1).b)
	a.entry(false, (&asm{}).u32(0).u32(0x8048000).u32(0x10).b)
	checkRow(t, "i386", NewTable(Sections{AddrSize: 4, DebugFrame: Section{Data: a.b}}), 0x8048001, "r4+4 ra:c-4")
}

// TestSearchTableLies: a .eh_frame_hdr that does not agree with .eh_frame is
// not believed.
func TestSearchTableLies(t *testing.T) {
	hdr := func(starts ...int) Section {
		a := (&asm{}).bytes(1, encPCRel|encSdata4, encUdata4, encDataRel|encSdata4).u32(0).u32(len(starts))
		for _, s := range starts {
			a.u32(s - 0x20000).u32(0x10000 + 22 - 0x20000)
		}
		return Section{Data: a.b, Addr: 0x20000}
	}
	s := ehFrame("")
	if off := len(s.EhFrame.Data) - 25; off != 22 { // length, CIE pointer, start, size, augmentation: 25 bytes
		t.Fatalf("FDE at %d", off)
	}
	for name, test := range map[string]struct {
		hdr  Section
		used bool
	}{
		"true":         {hdr(0x1000), true},
		"wrong start":  {hdr(0x0fff), false},
		"not sorted":   {hdr(0x1000, 0xfff), false},
		"too long":     {Section{Data: hdr(0x1000).Data[:16], Addr: 0x20000}, false},
		"empty":        {hdr(), false},
		"beyond frame": {Section{Data: hdr(0x1000).Data, Addr: 0x90000}, false},
	} {
		s.EhFrameHdr = test.hdr
		tab := NewTable(s)
		checkRow(t, name, tab, 0x1080, "r7+8 ra:c-8")
		if used := tab.hdr.n > 0; used != test.used {
			t.Errorf("%s: search table used: %v", name, used)
		}
	}
}

// TestDamagedEntries: what can be read beside damage is, and damage is counted.
func TestDamagedEntries(t *testing.T) {
	s := ehFrame("")
	whole := s.EhFrame.Data
	s.EhFrame.Data = append(append([]byte{}, whole...), 0xff, 0xff, 0, 0, 1, 2)
	tab := NewTable(s)
	checkRow(t, "length beyond the end", tab, 0x1000, "r7+8 ra:c-8")
	if st := tab.Stats(); st.BadEntries != 1 || st.FirstError == nil || !strings.Contains(st.FirstError.Error(), ".eh_frame+0x2f") {
		t.Errorf("stats %+v", st)
	}
	s.EhFrame.Data = append([]byte{}, whole...)
	s.EhFrame.Data[8] = 9 // CIE version
	tab = NewTable(s)
	checkRow(t, "CIE version", tab, 0x1000, "none")
	if st := tab.Stats(); st.BadEntries != 1 {
		t.Errorf("stats %+v", st)
	}
}

func FuzzCFI(f *testing.F) {
	f.Add([]byte{}, ehFrame("").EhFrame.Data, []byte{}, uint64(0x1000))
	f.Add([]byte{}, ehFrame("S", cfaRememberState, cfaExpression, 3, 1, 0x30, 0x41, cfaRestoreState).EhFrame.Data, []byte{}, uint64(0x1000))
	if s, ok := elfSections(f, "/bin/true"); ok {
		f.Add(s.EhFrameHdr.Data, s.EhFrame.Data, s.DebugFrame.Data, s.TextBase)
	}
	f.Fuzz(func(t *testing.T, hdr, eh, debug []byte, pc uint64) {
		for _, size := range []int{4, 8} {
			s := Sections{AddrSize: size}
			s.EhFrameHdr, s.EhFrame, s.DebugFrame = Section{Data: hdr, Addr: 0x3000}, Section{Data: eh, Addr: 0x10000}, Section{Data: debug}
			tab := NewTable(s)
			space := oneModule{NewModule(sectionsOnly{s})}
			for _, at := range []uint64{pc, 0x1000, 0x1001, 0x1080} {
				tab.Row(at)
				u := NewUnwinder("x86_64")
				smp := testSample(at, make([]byte, 256))
				if frames, _ := u.User(nil, smp, space); len(frames) > 256/4+65 {
					t.Errorf("%d frames", len(frames))
				}
				u.Repair([]Frame{{Addr: at}, {Addr: 5}}, 0, EndOfStack, smp, space)
			}
		}
	})
}
