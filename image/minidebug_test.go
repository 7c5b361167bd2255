package image

import (
	"bytes"
	"path/filepath"
	"runtime"
	"testing"
)

// miniDebug strips a program as Fedora does: what is not in .dynsym goes,
// compressed, into .gnu_debugdata.
func miniDebug(t testing.TB, path string, xz ...string) string {
	t.Helper()
	dir := t.TempDir()
	whole, mini, out := filepath.Join(dir, "whole"), filepath.Join(dir, "mini"), filepath.Join(dir, "stripped")
	install(t, path, whole)
	run(t, "objcopy", "--only-keep-debug", "-R", ".debug*", whole, mini)
	run(t, "strip", "--strip-debug", mini)
	run(t, "xz", append(xz, mini)...)
	run(t, "strip", "-o", out, whole)
	run(t, "objcopy", "--add-section", ".gnu_debugdata="+mini+".xz", out)
	return out
}

func TestMiniDebug(t *testing.T) {
	whole := compile(t, "calls.c")
	for _, args := range [][]string{nil, {"-9e"}, {"--check=crc32"}, {"--check=sha256"}, {"--block-size=512"}} {
		path := miniDebug(t, whole, args...)
		s, ref := testStore(t, Options{}), testStore(t, Options{})
		im := ref.Image(Key{Path: whole})
		im.load()
		named := 0
		for i := range im.symbols.all {
			y := &im.symbols.all[i]
			want := nameAt(ref, im.Key, y.start)
			if got := nameAt(s, Key{Path: path}, y.start); got != want {
				t.Errorf("xz %v: %#x is %s, want %s", args, y.start, got, want)
			}
			named++
		}
		if named < 5 || len(s.Problems()) > 0 {
			t.Errorf("xz %v: %d functions, %v", args, named, s.Problems())
		}
	}
}

// TestDamagedMiniDebug changes every byte: the checksum tells all but the
// ones that are not content; none makes us allocate what it claims.
func TestDamagedMiniDebug(t *testing.T) {
	path := miniDebug(t, compile(t, "calls.c"))
	e, err := (&openFiles{}).openELF(path)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := e.section(".gnu_debugdata")
	if err != nil {
		t.Fatal(err)
	}
	want, err := unxz(packed)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	runs := 0
	for i := range packed {
		for _, v := range []byte{0, 0x28, 0xff} {
			d := bytes.Clone(packed)
			d[i] = v
			runs++
			got, err := unxz(d)
			if err == nil && !bytes.Equal(got, want) {
				t.Fatalf("byte %d = %#x: other content, no error", i, v)
			}
		}
	}
	for i := 0; i < len(packed); i += 7 {
		unxz(packed[:i])
	}
	runtime.ReadMemStats(&after)
	if per := (after.TotalAlloc - before.TotalAlloc) / uint64(runs); per > 4<<20 {
		t.Errorf("%d bytes allocated each time", per)
	}
}

func FuzzUnxz(f *testing.F) {
	e, err := (&openFiles{}).openELF(miniDebug(f, compile(f, "calls.c"), "-0"))
	if err != nil {
		f.Fatal(err)
	}
	packed, err := e.section(".gnu_debugdata")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, _ := unxz(b); len(got) > max(smallMiniDebug, maxMiniExpansion*len(b)) {
			t.Errorf("%d bytes out of %d", len(got), len(b))
		}
	})
}
