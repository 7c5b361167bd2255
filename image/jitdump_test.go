package image

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// jitFile writes a dump: a function with lines, loaded, moved, and another
// loaded over what it left.
func jitFile(order binary.ByteOrder) []byte {
	var b bytes.Buffer
	put := func(v ...any) {
		for _, x := range v {
			binary.Write(&b, order, x)
		}
	}
	record := func(id uint32, v ...any) {
		start := b.Len()
		put(id, uint32(0), uint64(1))
		put(v...)
		order.PutUint32(b.Bytes()[start+4:], uint32(b.Len()-start))
	}
	put(uint32(jitMagic), uint32(1), uint32(jitHeader), uint32(62), uint32(0), uint32(77), uint64(0), uint64(0))
	record(2, uint64(0x1000), uint64(3),
		uint64(0x1000), uint32(10), uint32(0), []byte("a.js\x00"),
		uint64(0x1008), uint32(11), uint32(0), []byte("\xff\x00"),
		uint64(0x1010), uint32(5), uint32(0), []byte("b.js\x00"))
	load := func(addr, size uint64, name string) {
		record(0, uint32(77), uint32(77), addr, addr, size, uint64(1), []byte(name+"\x00"), make([]byte, size))
	}
	load(0x1000, 0x20, "first")
	record(1, uint32(77), uint32(77), uint64(0x9000), uint64(0x1000), uint64(0x9000), uint64(0x20), uint64(1))
	load(0x1010, 0x40, "second")
	record(9, []byte("something new"))
	record(3)
	return b.Bytes()
}

func TestJITDump(t *testing.T) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, "tmp"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "tmp/jit-77.dump"), jitFile(order), 0o644); err != nil {
			t.Fatal(err)
		}
		s := testStore(t, Options{Symfs: root})
		im := s.Image(Key{Kind: JIT, Path: "//anon", PID: 77})
		for offset, want := range map[uint64]string{
			0x1010: "second :0 from 0", 0x104f: "second :0 from 0", 0x1050: "none",
			0x9000: "first a.js:10 from 10", 0x9007: "first a.js:10 from 10", 0x9008: "first a.js:11 from 10", 0x9015: "first b.js:5 from 10",
			0x1000: "none", // overwritten in part: gone
		} {
			got := "none"
			for _, f := range s.Frames(s.Loc(Addr{Image: im, Offset: offset})) {
				got = fmt.Sprintf("%s %s:%d from %d", f.Name, f.File, f.Line, f.StartLine)
			}
			if got != want {
				t.Errorf("%#x: %s, want %s", offset, got, want)
			}
		}
		if p := s.Problems(); len(p) > 0 {
			t.Error(p)
		}
	}
}

func TestDamagedJITDump(t *testing.T) {
	whole := jitFile(binary.LittleEndian)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	runs := 0
	for i := range whole {
		code, err := readJITDump(bytes.NewReader(whole[:i]), int64(i))
		if err == nil && code != nil && i > jitHeader && len(code.symbols.all) > 2 {
			t.Errorf("%d bytes: no error", i)
		}
		for _, v := range []byte{0, 0x7f, 0xff} {
			d := bytes.Clone(whole)
			d[i] = v
			readJITDump(bytes.NewReader(d), int64(len(d)))
			runs += 2
		}
	}
	runtime.ReadMemStats(&after)
	if per := (after.TotalAlloc - before.TotalAlloc) / uint64(runs); per > 128<<10 {
		t.Errorf("%d bytes allocated each time", per)
	}
}

func FuzzJITDump(f *testing.F) {
	f.Add(jitFile(binary.LittleEndian))
	f.Add(jitFile(binary.BigEndian))
	f.Fuzz(func(t *testing.T, b []byte) {
		code, _ := readJITDump(bytes.NewReader(b), int64(len(b)))
		if code == nil {
			return
		}
		for _, y := range code.symbols.all {
			code.position(y.start, y.end-1)
		}
	})
}
