package unwind

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/perfcorrect/perfcorrect/perfdata"
)

// sectionsOnly is a Source without text.
type sectionsOnly struct{ s Sections }

func (s sectionsOnly) UnwindSections() (Sections, error)    { return s.s, nil }
func (s sectionsOnly) ReadVaddr(p []byte, vaddr uint64) int { return 0 }

// withText is a Source with bytes from vaddr 0 on.
type withText struct {
	sectionsOnly
	text []byte
}

func (s withText) ReadVaddr(p []byte, vaddr uint64) int {
	if vaddr > uint64(len(s.text)) {
		return 0
	}
	return copy(p, s.text[vaddr:])
}

// oneModule is an address space with one module at its own addresses, in the
// lowest MiB.
type oneModule struct{ m *Module }

func (o oneModule) Find(addr uint64) (*Module, uint64, bool) {
	return o.m, addr, addr < 1<<20
}

const stackBase = 0x7fff00000000

// testSample is an x86-64 sample at ip with rsp at stackBase and rbp 0x40 above.
func testSample(ip uint64, stack []byte) *perfdata.Sample {
	s := &perfdata.Sample{StackUser: stack, StackUserMax: uint64(len(stack))}
	s.RegsUser = perfdata.Regs{ABI: 2, Mask: 0x1ff, Values: []uint64{1, 2, 3, 4, 5, 6, stackBase + 0x40, stackBase, ip}}
	return s
}

func words(v ...uint64) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

func frameString(frames []Frame, o Outcome) string {
	s := ""
	for _, f := range frames {
		if f.Return {
			s += "^"
		}
		s += fmt.Sprintf("%x ", f.Addr)
	}
	return s + o.String()
}

func TestOutcomes(t *testing.T) {
	module := func(program ...byte) AddressSpace { return oneModule{NewModule(sectionsOnly{ehFrame("", program...)})} }
	none := oneModule{NewModule(sectionsOnly{})}
	tests := []struct {
		name  string
		space AddressSpace
		ip    uint64
		stack []byte
		more  bool // the dump was cut
		want  string
	}{
		{"return addresses, zero last", module(), 0x1000, words(0x1010, 0x1020, 0), false, "1000 ^1010 ^1020 end of stack"},
		{"undefined return address", module(cfaUndefined, 16), 0x1000, words(0x1010), false, "1000 end of stack"},
		{"more stack than was copied", module(), 0x1000, words(0x1010, 0x1020), false, "1000 ^1010 ^1020 stack dump too short"},
		{"beyond the end of the stack", module(), 0x1000, words(0x1010, 0x1020), true, "1000 ^1010 ^1020 corrupt"},
		{"return address is no code", module(), 0x1000, words(0x1010, 0x12345678), false, "1000 ^1010 corrupt"},
		{"CFA does not advance", module(cfaDefCFAOffset, 0), 0x1000, words(0x1010), false, "1000 corrupt"},
		{"CFA stays", module(cfaDefCFAOffset, 0, cfaOffsetExtendedSF, 16, 0), 0x1000, words(0x1010), false, "1000 did not advance"},
		{"register was not recorded", module(cfaDefCFARegister, 15), 0x1000, words(0x1010), false, "1000 register missing"},
		{"malformed", module(0x3f), 0x1000, words(0x1010), false, "1000 corrupt"},
		{"no information, frame pointer", none, 0x1000, words(0, 0, 0, 0, 0, 0, 0, 0, stackBase+0x50, 0x1010, 0, 0x1020), false, "1000 ^1010 ^1020 end of stack"},
		{"no information, bad frame pointer", none, 0x1000, words(0, 0, 0, 0, 0, 0, 0, 0, stackBase+0x10, 0x1010), false, "1000 no unwind information"},
		{"no information, frame not copied", none, 0x1000, words(0, 0), false, "1000 stack dump too short"},
		{"call through a bad pointer", module(), 1 << 40, words(0x1010, 0), false, "10000000000 ^1010 end of stack"},
	}
	for _, test := range tests {
		s := testSample(test.ip, test.stack)
		if test.more {
			s.StackUserMax += 4096
		}
		u := NewUnwinder("x86_64")
		if got := frameString(u.User(nil, s, test.space)); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
	kernelThread := testSample(0, nil)
	kernelThread.RegsUser = perfdata.Regs{}
	if got := frameString(NewUnwinder("x86_64").User(nil, kernelThread, none)); got != "end of stack" {
		t.Errorf("kernel thread: %s", got)
	}
}

// TestCode: without call frame information, code that sets up and leaves
// frames is recognised.
func TestCode(t *testing.T) {
	pad := func(n int, code ...byte) []byte { return append(make([]byte, n), append(code, make([]byte, 16)...)...) }
	ra, fp, bad := uint64(0x1010), uint64(stackBase+0x40), uint64(0xdead)
	for name, test := range map[string]struct {
		code  []byte
		off   int // of ip behind 0x100
		stack []uint64
	}{
		"endbr64":     {[]byte{0xf3, 0x0f, 0x1e, 0xfa, 0x55}, 0, []uint64{ra}},
		"push":        {[]byte{0x55, 0x48, 0x89, 0xe5}, 0, []uint64{ra}},
		"mov":         {[]byte{0x55, 0x48, 0x89, 0xe5}, 1, []uint64{fp, ra}},
		"pop":         {[]byte{0x5d, 0xc3}, 0, []uint64{fp, ra}},
		"ret":         {[]byte{0xc3}, 0, []uint64{ra}},
		"plt jump":    {[]byte{0xff, 0x25, 1, 2, 3, 4}, 0, []uint64{ra}},
		"plt push":    {[]byte{0x68, 1, 0, 0, 0, 0xe9, 1, 2, 3, 4}, 0, []uint64{ra}},
		"plt to plt0": {[]byte{0x68, 1, 0, 0, 0, 0xe9, 1, 2, 3, 4}, 5, []uint64{1, ra}},
	} {
		stack := append(test.stack, bad, bad, bad, bad, bad, bad, bad, bad)[:8]
		stack = append(stack, 0, 0x1020) // the frame record rbp points to
		src := withText{sectionsOnly{}, pad(0x100, test.code...)}
		u := NewUnwinder("x86_64")
		got := frameString(u.User(nil, testSample(uint64(0x100+test.off), words(stack...)), oneModule{NewModule(src)}))
		want := fmt.Sprintf("%x ^1010 ^1020 end of stack", 0x100+test.off)
		if got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// TestARM64: the return address is in lr in leaves, may be signed, and the
// frame record may lie anywhere in the frame.
func TestARM64(t *testing.T) {
	cie := func(a *asm, aug string) {
		b := []byte{cfaDefCFA, 31, 0}
		a.entry(false, (&asm{}).u32(0).bytes(1).bytes([]byte("zR"+aug+"\x00")...).bytes(4, 0x78, 30, 1, encAbsptr).bytes(b...).b)
	}
	fde := func(a *asm, start uint64, program ...byte) {
		a.entry(false, (&asm{}).u32(len(a.b)+4).u64(start).u64(0x100).bytes(0).bytes(program...).b)
	}
	a := &asm{}
	cie(a, "B")
	fde(a, 0x1000) // a leaf
	// paciasp; stp x29, x30, [sp, #-32]!
	fde(a, 0x2000, cfaAdvanceLoc|1, cfaNegateRAState, cfaAdvanceLoc|1, cfaDefCFAOffset, 32, cfaOffset|29, 4, cfaOffset|30, 3)
	fde(a, 0x3000, cfaUndefined, 30)
	// All FDEs name the CIE at 0.
	space := oneModule{NewModule(sectionsOnly{Sections{EhFrame: Section{Data: a.b, Addr: 0x10000}}})}
	sample := func(pc, lr, fp uint64, stack ...uint64) *perfdata.Sample {
		s := &perfdata.Sample{StackUser: words(stack...)}
		s.RegsUser = perfdata.Regs{ABI: 2, Mask: 0xf << 29, Values: []uint64{fp, lr, stackBase, pc}}
		s.StackUserMax = uint64(len(s.StackUser))
		return s
	}
	const pac = 0x0042 << 48
	none := oneModule{NewModule(sectionsOnly{})}
	for _, test := range []struct {
		name  string
		s     *perfdata.Sample
		space AddressSpace
		want  string
	}{
		{"leaf", sample(0x1004, 0x2010, 0, 0, pac|0x3010, 0, 0), space, "1004 ^2010 ^3010 end of stack"},
		{"signed, not saved", sample(0x2004, pac|0x3010, 0), space, "2004 ^3010 end of stack"},
		{"saved", sample(0x2008, 0xbad, 0, 0, pac|0x3010, 0, 0), space, "2008 ^3010 end of stack"},
		{"lr rule in a caller", sample(0x2008, 0xbad, 0, 0, 0x1010, 0, 0), space, "2008 ^1010 did not advance"},
		{"frame pointers", sample(0x1004, 0x2010, stackBase, stackBase+16, pac|0x1010, 0, 0x1020), none, "1004 ^1010 ^1020 end of stack"},
	} {
		if got := frameString(NewUnwinder("aarch64").User(nil, test.s, test.space)); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

// TestRepairCases: from 0x1000 on there is no frame yet, from 0x1080 on rbp
// holds it; rbp is stackBase+0x40 in all samples.
func TestRepairCases(t *testing.T) {
	space := oneModule{NewModule(sectionsOnly{ehFrame("", cfaAdvanceLoc1, 0x80, cfaDefCFA, 6, 16, cfaOffset|6, 2)})}
	ret := func(addrs ...uint64) []Frame {
		f := []Frame{{Addr: addrs[0], Mode: ModeUser}}
		for _, a := range addrs[1:] {
			f = append(f, Frame{Addr: a, Return: true, Mode: ModeUser})
		}
		return f
	}
	for _, test := range []struct {
		name  string
		chain []Frame
		stack []byte
		want  string
		put   int
	}{
		{"right as it is", ret(0x1088, 0x1099, 0x10aa), nil, "1088 ^1099 ^10aa end of stack", 0},
		{"caller put back", ret(0x1000, 0x1099, 0x10aa), words(0x1088), "1000 ^1088 ^1099 ^10aa end of stack", 1},
		{"two callers", ret(0x1000, 0x1099), words(0x1008, 0x1088), "1000 ^1008 ^1088 ^1099 end of stack", 2},
		{"recursion", ret(0x1000, 0x1088, 0x1088), words(0x1088), "1000 ^1088 ^1088 ^1088 end of stack", 1},
		{"bytes used up", ret(0x1000, 0x1099), words(0x1008), "1000 ^1008 ^1099 end of stack", 1},
		{"no bytes at all", ret(0x1000, 0x1099), nil, "1000 ^1099 end of stack", 0},
		{"rbp is no frame pointer", ret(0x1000, 0x1099), words(0x1008, 0x1010, 0), "1000 ^1008 ^1010 end of stack", 2},
		{"chain of the leaf alone", ret(0x1000), words(0x1088), "1000 ^1088 end of stack", 1},
	} {
		u := NewUnwinder("x86_64")
		got, put, o := u.Repair(test.chain, 0, EndOfStack, testSample(test.chain[0].Addr, test.stack), space)
		if s := frameString(got, o); s != test.want || put != test.put {
			t.Errorf("%s: %s, %d put back; want %s, %d", test.name, s, put, test.want, test.put)
		}
	}
}

// TestSampleChoosesEvidence: a large dump is unwound, a small one mends the
// callchain, and without registers the callchain is all there is.
func TestSampleChoosesEvidence(t *testing.T) {
	space := oneModule{NewModule(sectionsOnly{ehFrame("")})}
	kernel := uint64(0xffffffff81000000)
	for _, test := range []struct {
		name  string
		chain []uint64
		stack []byte
		want  string
	}{
		{"kernel and dump", []uint64{perfdata.ContextKernel, kernel}, words(0x1010, 0), "ffffffff81000000 1000 ^1010 end of stack"},
		{"large dump beside a chain", []uint64{perfdata.ContextUser, 0x1000, 0x1099}, append(words(0x1010, 0), make([]byte, fullDump)...), "1000 ^1010 end of stack"},
		{"small dump beside a chain", []uint64{perfdata.ContextKernel, kernel, perfdata.ContextUser, 0x1000, 0x1099}, words(0x1010), "ffffffff81000000 1000 ^1010 ^1099 end of stack"},
		{"no dump", []uint64{perfdata.ContextUser, 0x1000, 0x1099}, nil, "1000 ^1099 end of stack"},
	} {
		s := testSample(0x1000, test.stack)
		s.Callchain = test.chain
		if got := frameString(NewUnwinder("x86_64").Sample(nil, s, space)); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}
