package image

import (
	"encoding/binary"
	"testing"
)

// TestPLTARM64 decodes stubs as GNU ld writes them, plain and with BTI.
func TestPLTARM64(t *testing.T) {
	code := func(words ...uint32) (b []byte) {
		for _, w := range words {
			b = binary.LittleEndian.AppendUint32(b, w)
		}
		return b
	}
	plt := code(
		0xa9bf7bf0, 0x90000090, 0xf947fe11, 0x913fe210, 0xd61f0220, 0xd503201f, 0xd503201f, 0xd503201f, // PLT0
		0xb0000090, 0xf9400211, 0x91000210, 0xd61f0220, // adrp 0x11000; ldr [x16]
		0xb0000090, 0xf9400611, 0x91002210, 0xd61f0220, // ldr [x16, #8]
		0xd503245f, 0xf0ffff90, 0xf9400a11, 0x91004210, 0xd61f0220, 0xd503201f, // bti c; adrp backwards
	)
	const addr = 0x5b0
	want := []pltEntry{
		{0x5b4, 0x5c4, 0x10ff8, -1}, // PLT0 itself: its slot has no relocation
		{0x5d0, 0x5e0, 0x11000, -1},
		{0x5e0, 0x5f0, 0x11008, -1},
		{0x5f0, 0x604, ^uint64(0) - 0xd000 + 1 + 0x10, -1},
	}
	got := pltARM64(plt, addr)
	if len(got) != len(want) {
		t.Fatalf("%d stubs: %#x", len(got), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("stub %d: %#x, want %#x", i, got[i], want[i])
		}
	}
}

func TestPlainName(t *testing.T) {
	for name, want := range map[string]string{
		"memcpy@@GLIBC_2.14": "memcpy", "old@VERS_1": "old", "puts": "puts",
		"type:.eq.struct { a@b/c }": "type:.eq.struct { a@b/c }", "@": "@", "": "",
	} {
		if got := plainName(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
