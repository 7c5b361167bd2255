package image

import (
	"bytes"
	"encoding/binary"
	"os"
	"runtime"
	"strings"
	"testing"
)

// exercise asks everything of an ELF file given as bytes.
func exercise(b []byte) {
	e, err := newELF("fuzz", bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return
	}
	s := NewStore(Options{BuildIDDir: "/nonexistent", DebugDirs: []string{}})
	im := s.Image(Key{Path: "fuzz"})
	im.loaded, im.file = true, e
	im.readSymbols()
	for off := uint64(0); off < uint64(len(b)); off += 64 {
		s.Loc(Addr{Image: im, Offset: off})
		s.Loc(Addr{Image: im, Offset: off, Return: true})
	}
	for l := range Loc(s.NumLocs()) {
		f := s.Function(l)
		s.CallSite(l)
		s.Line(l)
		s.Frames(l)
		if f != nil {
			s.StartLine(f)
			s.ResolvePLT(f)
		}
	}
	s.Problems()
}

// tinyELF is a whole ELF file of a few hundred bytes: a text segment with a
// call, a PLT stub with its slot, symbols, and a build ID.
func tinyELF() []byte {
	var b bytes.Buffer
	le := binary.LittleEndian
	put := func(v ...any) {
		for _, x := range v {
			binary.Write(&b, le, x)
		}
	}
	const (
		text, plt, rela, sym, str, note, shstr = 0x100, 0x140, 0x150, 0x168, 0x1b0, 0x1c8, 0x1f0
		shdrs                                  = 0x240
	)
	put([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	put(uint16(3), uint16(62), uint32(1), uint64(text), uint64(64), uint64(shdrs), uint32(0), uint16(64), uint16(56), uint16(2), uint16(64), uint16(8), uint16(7))
	put(uint32(1), uint32(5), uint64(0), uint64(0), uint64(0), uint64(0x200), uint64(0x200), uint64(0x1000))
	put(uint32(4), uint32(4), uint64(note), uint64(note), uint64(note), uint64(0x24), uint64(0x24), uint64(4))
	pad := func(to int) { b.Write(make([]byte, to-b.Len())) }
	pad(text)
	b.Write([]byte{0xf3, 0x0f, 0x1e, 0xfa, 0xe8, 0x37, 0, 0, 0, 0xff, 0xd0, 0xc3}) // endbr64; call plt; call *rax; ret
	pad(plt)
	b.Write([]byte{0xff, 0x25, 0xba, 0x0e, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0}) // jmp *0x1000(rip)
	put(uint64(0x1000), uint64(1)<<32|7, uint64(0))
	put(make([]byte, 24))
	put(uint32(1), byte(0x12), byte(0), uint16(0), uint64(0), uint64(0))
	put(uint32(6), byte(0x12), byte(0), uint16(1), uint64(text), uint64(12))
	b.WriteString("\x00puts\x00_ZN1a1bEv\x00")
	pad(note)
	put(uint32(4), uint32(20), uint32(3), []byte("GNU\x00"), make([]byte, 20))
	pad(shstr)
	b.WriteString("\x00.text\x00.plt\x00.rela.plt\x00.dynsym\x00.dynstr\x00.note\x00.shstrtab\x00")
	pad(shdrs)
	sh := func(name, typ uint32, flags, off, size uint64, link uint32, ent uint64) {
		put(name, typ, flags, off, off, size, link, uint32(0), uint64(1), ent)
	}
	put(make([]byte, 64))
	sh(1, 1, 6, text, 12, 0, 0)
	sh(7, 1, 6, plt, 16, 0, 16)
	sh(12, 4, 2, rela, 24, 4, 24)
	sh(22, 11, 2, sym, 72, 5, 24)
	sh(30, 3, 2, str, 17, 0, 0)
	sh(38, 7, 2, note, 36, 0, 0)
	sh(44, 3, 0, shstr, 0x37, 0, 0)
	return b.Bytes()
}

func TestTinyELF(t *testing.T) {
	b := tinyELF()
	e, err := newELF("tiny", bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if e.buildID != strings.Repeat("00", 20) {
		t.Errorf("build ID %q", e.buildID)
	}
	s := testStore(t, Options{})
	im := s.Image(Key{Path: "tiny"})
	im.loaded, im.file = true, e
	im.readSymbols()
	if got := nameAt(s, im.Key, 0x104); got != "a::b" {
		t.Errorf("text is in %s", got)
	}
	if got := nameAt(s, im.Key, 0x140); got != "puts@plt" {
		t.Errorf("stub is %s", got)
	}
	for ret, call := range map[uint64]uint64{0x109: 0x104, 0x10b: 0x109} {
		if got := s.CallSite(s.Loc(Addr{Image: im, Offset: ret, Return: true})); got.Offset != call {
			t.Errorf("call before %#x is at %#x, want %#x", ret, got.Offset, call)
		}
	}
	if len(im.problems) > 0 {
		t.Error(im.problems)
	}
}

// TestDamagedELF cuts the file at every byte and sets every byte to values
// that make sizes and offsets wild.
func TestDamagedELF(t *testing.T) {
	b := tinyELF()
	for n := range b {
		exercise(b[:n])
	}
	for i := range b {
		for _, v := range []byte{0x00, 0x7f, 0xff} {
			d := bytes.Clone(b)
			d[i] = v
			exercise(d)
		}
	}
}

// TestWildSizes gives sections and segments sizes far beyond the file, and
// measures what they make us allocate.
func TestWildSizes(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for field := 0; field < 8*64; field += 8 {
		for _, size := range []uint64{1 << 32, 1 << 40, 1 << 62, ^uint64(0)} {
			d := tinyELF()
			binary.LittleEndian.PutUint64(d[0x240+field:], size)
			exercise(d)
		}
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 256<<20 {
		t.Errorf("%d MiB allocated for files of 1 KiB", got>>20)
	}
}

// TestDamagedDebug sets bytes all over a program with debug information.
func TestDamagedDebug(t *testing.T) {
	for _, args := range []string{"-gdwarf-5", "-gdwarf-4 -fdebug-types-section"} {
		damageDebug(t, compile(t, "inline.cc", strings.Fields(args)...))
	}
}

func damageDebug(t *testing.T, path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	exercise(b)
	x := uint32(1)
	for range 100 {
		d := bytes.Clone(b)
		for range 20 {
			x = x*1664525 + 1013904223
			d[0x40+int(x>>8)%(len(d)-0x40)] = byte(x >> 24)
		}
		exercise(d)
	}
}

func FuzzOpenELF(f *testing.F) {
	f.Add(tinyELF())
	for _, n := range []int{0, 4, 64, 0x240} {
		f.Add(tinyELF()[:n])
	}
	// With debug information, unwind tables and a PLT; small, for a program.
	b, err := os.ReadFile(compile(f, "calls.c", "-g", "-nostartfiles", "-Wl,-z,noseparate-code"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) { exercise(b) })
}

func FuzzPerfMap(f *testing.F) {
	f.Add([]byte("7f0000000000 100 a b c\n7f0000000040 20 new\n"))
	f.Add([]byte("0 ffffffffffffffff x\n\n10 10\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		tab, bad, err := readPerfMap(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(b, []byte("\n")) + 1; len(tab.all)+bad > lines {
			t.Errorf("%d symbols and %d malformed lines of %d", len(tab.all), bad, lines)
		}
		for i := range tab.all {
			if i > 0 && tab.all[i-1].end > tab.all[i].start {
				t.Errorf("overlap at %#x", tab.all[i].start)
			}
			if tab.find(tab.all[i].start) != i || tab.find(tab.all[i].end-1) != i {
				t.Errorf("symbol %d is not found", i)
			}
		}
	})
}

func FuzzKallsyms(f *testing.F) {
	f.Add([]byte(someKallsyms))
	f.Add([]byte("0000000000000000 T a\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := readKallsyms("kallsyms", bytes.NewReader(b))
		if err != nil || k.core == nil {
			return
		}
		for i := range k.core.all {
			k.core.find(k.core.all[i].start)
			if i > 0 && k.core.all[i-1].start >= k.core.all[i].start {
				t.Errorf("symbols %d and %d are not in order", i-1, i)
			}
		}
	})
}

func FuzzDemangle(f *testing.F) {
	for _, name := range []string{"_ZN1a1bEv", "_RNvC1a4main", "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "_ZSt4sortIPiEvT_S1_"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, form := range []NameForm{PerfNames, FullNames, ShortNames} {
			if got := demangled(name, form); len(got) > 1<<(maxDemangled+1)+rustHash && got != name {
				t.Errorf("%d bytes became %d", len(name), len(got))
			}
		}
		if got := cutClones(name); !strings.HasPrefix(name, got) {
			t.Errorf("%q became %q", name, got)
		}
	})
}
