package image

import (
	"testing"
)

const libc = "/lib/x86_64-linux-gnu/libc.so.6"

func TestLocInterning(t *testing.T) {
	s := NewStore(Options{})
	a, b := s.Image(Key{Path: "/a"}), s.Image(Key{Path: "/b"})
	if s.Image(Key{Path: "/a"}) != a {
		t.Fatal("the same key gave two images")
	}
	const n = 50_000 // several growths of the table
	at := func(i int) Addr {
		im := a
		if i%2 == 1 {
			im = b
		}
		return Addr{Image: im, Offset: uint64(i/4) * 3, Return: i%4 >= 2}
	}
	for round := range 2 {
		for i := range n {
			if l := s.Loc(at(i)); l != Loc(i) {
				t.Fatalf("round %d: Loc(%+v) = %d, want %d", round, at(i), l, i)
			}
		}
	}
	if s.NumLocs() != n {
		t.Fatalf("NumLocs = %d, want %d", s.NumLocs(), n)
	}
	for i := range n {
		if got := s.Addr(Loc(i)); got != at(i) {
			t.Fatalf("Addr(%d) = %+v, want %+v", i, got, at(i))
		}
	}
	l := s.Loc(Addr{Offset: 7})
	if got := s.Addr(l); got.Image.Kind != Unknown || got.Offset != 7 {
		t.Fatalf("an address without image became %+v", got)
	}
	if f := s.Function(l); f != nil {
		t.Fatalf("function %v for an unknown address", f)
	}
}

func TestLocDoesNotAllocate(t *testing.T) {
	s := NewStore(Options{})
	im := s.Image(Key{Path: "/a"})
	s.Loc(Addr{Image: im, Offset: 1})
	if n := testing.AllocsPerRun(1000, func() { s.Loc(Addr{Image: im, Offset: 1}) }); n != 0 {
		t.Errorf("%v allocations to look a Loc up", n)
	}
}

// BenchmarkLoc interns as session does: a million distinct addresses, each
// met many times.
func BenchmarkLoc(b *testing.B) {
	s := NewStore(Options{})
	im := s.Image(Key{Path: "/a"})
	const distinct = 1 << 20
	x := uint64(1)
	offsets := make([]uint64, distinct)
	for i := range offsets {
		x = x*6364136223846793005 + 1442695040888963407
		offsets[i] = x >> 40
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		s.Loc(Addr{Image: im, Offset: offsets[i*7919&(distinct-1)], Return: true})
		i++
	}
}

// BenchmarkLocHot is the same with the few thousand addresses that make up
// most frames of real recordings.
func BenchmarkLocHot(b *testing.B) {
	s := NewStore(Options{})
	im := s.Image(Key{Path: "/a"})
	for i := 0; b.Loop(); i++ {
		s.Loc(Addr{Image: im, Offset: uint64(i*7919&4095) * 5, Return: true})
	}
}

func BenchmarkOpenLibc(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		s := NewStore(Options{})
		im := s.Image(Key{Path: libc})
		if im.FunctionAt(0x30000) == nil {
			b.Fatal("no function")
		}
		im.file.close()
	}
}

func BenchmarkFunction(b *testing.B) {
	s := NewStore(Options{})
	im := s.Image(Key{Path: libc})
	for i := range 1 << 16 {
		s.Loc(Addr{Image: im, Offset: 0x28000 + uint64(i)*16})
	}
	b.ResetTimer()
	i := 0
	for b.Loop() {
		s.Function(Loc(i & 0xffff))
		i++
	}
}
