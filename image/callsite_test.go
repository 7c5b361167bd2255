package image

import "testing"

// TestCallPattern is how often the bytes before a return address alone tell
// the call: what is left where no function is known. Longer forms of the
// indirect call can be mistaken for one with more prefix bytes.
func TestCallPattern(t *testing.T) {
	s := testStore(t, Options{})
	im := s.Image(Key{Path: libc})
	im.load()
	calls, right := 0, 0
	for _, d := range objdump(t, libc) {
		if !d.isCall() {
			continue
		}
		calls++
		off, _ := im.FileOffset(d.addr)
		if im.callBefore(off+uint64(d.length), nil) == off {
			right++
		}
	}
	t.Logf("%d of %d calls of libc found by pattern", right, calls)
	if right*1000 < calls*995 {
		t.Errorf("%d of %d calls found by pattern", right, calls)
	}
}

func TestCallPatternForms(t *testing.T) {
	text := func(int64) bool { return true }
	none := func(int64) bool { return false }
	for _, c := range []struct {
		code   string
		isText func(int64) bool
		want   int
	}{
		{"\x90\x90\xe8\x01\x02\x03\x04", text, 5},
		{"\x90\x90\xe8\x01\x02\x03\x04", none, 0},
		{"\x90\x90\x90\xff\xd0", text, 2},                 // call *%rax
		{"\x90\x90\x41\xff\xd4", text, 3},                 // call *%r12
		{"\x90\x3e\xff\xd0", text, 3},                     // notrack call *%rax
		{"\x90\xff\x50\x18", text, 3},                     // call *0x18(%rax)
		{"\x90\xff\x54\x24\x08", text, 4},                 // call *8(%rsp)
		{"\x90\xff\x15\x01\x02\x03\x04", text, 6},         // call *disp(%rip)
		{"\x90\xff\x94\xc0\x01\x02\x03\x04", text, 7},     // call *disp(%rax,%rax,8)
		{"\x90\x41\xff\x94\xc4\x01\x02\x03\x04", text, 8}, // with REX
		{"\x90\xff\x25\x01\x02\x03\x04", text, 0},         // jmp
		{"\x48\x89\xc3", text, 0},                         // mov
		{"", text, 0},
	} {
		if got := callPattern([]byte(c.code), c.isText); got != c.want {
			t.Errorf("% x: a call of %d bytes, want %d", c.code, got, c.want)
		}
	}
}

func TestCallSiteOfIP(t *testing.T) {
	s := testStore(t, Options{})
	im := s.Image(Key{Path: libc})
	a := Addr{Image: im, Offset: 0x30000}
	if got := s.CallSite(s.Loc(a)); got != a {
		t.Errorf("an ip that is no return address: %+v", got)
	}
	gone := Addr{Image: s.Image(Key{Path: "/no/such/file"}), Offset: 0x30000, Return: true}
	if got := s.CallSite(s.Loc(gone)); got.Offset != 0x2ffff || got.Return {
		t.Errorf("without code: %+v", got)
	}
}

// BenchmarkCallSite decodes every function of libc once.
func BenchmarkCallSite(b *testing.B) {
	var rets []uint64
	im := NewStore(Options{}).Image(Key{Path: libc})
	im.load()
	for i := range im.symbols.all {
		for _, c := range im.calls(im.function(&im.symbols.all[i])) {
			rets = append(rets, c.next)
		}
	}
	b.ResetTimer()
	for b.Loop() {
		s := NewStore(Options{})
		im := s.Image(Key{Path: libc})
		for _, r := range rets {
			s.CallSite(s.Loc(Addr{Image: im, Offset: r, Return: true}))
		}
		s.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(rets)), "ns/site")
}
