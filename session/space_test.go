package session

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSpaceInsert draws mappings on a line of 64 addresses and compares each
// address with a plain array that remembers the last writer.
func TestSpaceInsert(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var sp space
		var want [64]*object
		for range rnd.IntN(20) {
			start := rnd.Uint64N(64)
			m := mapping{start: start, end: min(64, start+rnd.Uint64N(20)), obj: new(object)}
			sp.insert(m)
			for a := m.start; a < m.end; a++ {
				want[a] = m.obj
			}
		}
		for a := range want {
			var got *object
			if m := sp.find(uint64(a)); m != nil {
				got = m.obj
			}
			if got != want[a] {
				t.Fatalf("address %d: got %p want %p in %+v", a, got, want[a], sp.maps)
			}
		}
		if !slices.IsSortedFunc(sp.maps, func(a, b mapping) int { return int(a.start) - int(b.start) }) {
			t.Fatalf("not sorted: %+v", sp.maps)
		}
	}
}

func TestSpaceSplitKeepsOffsets(t *testing.T) {
	var sp space
	a, b := &object{}, &object{}
	sp.insert(mapping{start: 0x1000, end: 0x9000, bias: 0x1000 - 0x500, obj: a})
	sp.insert(mapping{start: 0x3000, end: 0x4000, bias: 0x3000, obj: b})
	for _, c := range []struct {
		addr, offset uint64
		obj          *object
	}{
		{0x1000, 0x500, a}, {0x2fff, 0x24ff, a}, {0x3000, 0, b}, {0x3fff, 0xfff, b}, {0x4000, 0x3500, a}, {0x8fff, 0x84ff, a},
	} {
		m := sp.find(c.addr)
		if m == nil || m.obj != c.obj || c.addr-m.bias != c.offset {
			t.Errorf("address %#x: %+v, want offset %#x", c.addr, m, c.offset)
		}
	}
	if m := sp.find(0x9000); m != nil {
		t.Errorf("0x9000 is mapped: %+v", m)
	}
	if m := sp.find(0xfff); m != nil {
		t.Errorf("0xfff is mapped: %+v", m)
	}
}
