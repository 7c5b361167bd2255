package image

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const someKallsyms = `ffffffff81000000 T srso_alias_untrain_ret
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000100 t helper
ffffffff81000180 W weak_one
ffffffff81000180 T strong_one
ffffffff81000200 D some_data
ffffffff81000300 T after_data
this line is no symbol
ffffffffc0100000 t nf_init	[nf_tables]
ffffffffc0100040 T nf_do-it	[nf_tables]
ffffffffc0200000 t bpf_prog_6deef7357e7b4530	[bpf]
`

func kallsymsFile(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "kallsyms")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKallsyms(t *testing.T) {
	s := testStore(t, Options{Kallsyms: kallsymsFile(t, someKallsyms)})
	k := Key{Kind: Kernel, Path: "[kernel.kallsyms]"}
	for _, c := range []struct {
		at   uint64
		want string
	}{
		{0xffffffff80ffffff, "none"},
		{0xffffffff81000000, "_text"}, // of aliases without sizes the last, as perf
		{0xffffffff81000120, "helper"},
		{0xffffffff81000190, "strong_one"},
		{0xffffffff810001ff, "strong_one"},
		{0xffffffff81000200, "none"}, // data
		{0xffffffff81000300, "after_data"},
	} {
		if got := nameAt(s, k, c.at); got != c.want {
			t.Errorf("%#x is in %s, want %s", c.at, got, c.want)
		}
	}
	m := Key{Kind: Module, Path: "/lib/modules/6.1/kernel/net/nf-tables.ko.xz"}
	s.Image(m).SetLoadAddress(0xffffffffc0100000)
	if got := nameAt(s, m, 0x44); got != "nf_do-it" {
		t.Errorf("module symbol: %s", got)
	}
	if f := s.Image(m).FunctionAt(0x44); f.Entry != 0x40 {
		t.Errorf("module function begins at %#x", f.Entry)
	}
	if got := nameAt(s, Key{Kind: BPF, Path: "bpf_prog_6deef7357e7b4530"}, 0x10); got != "bpf_prog_6deef7357e7b4530" {
		t.Errorf("BPF program: %s", got)
	}
}

func TestKallsymsHidden(t *testing.T) {
	var zeros strings.Builder
	for line := range strings.Lines(someKallsyms) {
		zeros.WriteString("0000000000000000" + line[16:])
	}
	s := testStore(t, Options{Kallsyms: kallsymsFile(t, zeros.String())})
	k := Key{Kind: Kernel, Path: "[kernel.kallsyms]"}
	if got := nameAt(s, k, 0xffffffff81000100); got != "none" {
		t.Errorf("a name out of hidden addresses: %s", got)
	}
	if p := s.Image(k).Problem(); p == nil || p.Kind != Restricted || !strings.Contains(p.Hint, "kptr_restrict") {
		t.Errorf("problem: %v", p)
	}
}

// A kernel that was loaded elsewhere has other addresses: no names rather than
// wrong ones.
func TestKallsymsOfAnotherBoot(t *testing.T) {
	for _, c := range []struct {
		text uint64
		want bool
	}{{0xffffffff81000000, true}, {0xffffffff9ca00000, false}} {
		s := testStore(t, Options{Kallsyms: kallsymsFile(t, someKallsyms)})
		im := s.Image(Key{Kind: Kernel, Path: "[kernel.kallsyms]"})
		im.SetReference("_text", c.text)
		if f := im.FunctionAt(0xffffffff81000000); (f != nil) != c.want {
			t.Errorf("reference at %#x: function %v", c.text, f)
		}
		if p := im.Problem(); !c.want && (p == nil || p.Kind != Mismatch) {
			t.Errorf("problem %v", p)
		}
	}
}

// TestKernelBuildID uses perf's copy of another kernel's kallsyms, and not
// those of the kernel that runs.
func TestKernelBuildID(t *testing.T) {
	id := strings.Repeat("12", 20)
	s := testStore(t, Options{})
	k := Key{Kind: Kernel, Path: "[kernel.kallsyms]", BuildID: id}
	if got := nameAt(s, k, 0xffffffff81000100); got != "none" {
		t.Errorf("another kernel's symbols were used: %s", got)
	}
	if p := s.Image(k).Problem(); p == nil || p.Kind != Missing {
		t.Errorf("problem: %v", p)
	}
	s = testStore(t, Options{})
	install(t, kallsymsFile(t, someKallsyms), filepath.Join(s.opt.BuildIDDir, "[kernel.kallsyms]", id, "kallsyms"))
	if got := nameAt(s, k, 0xffffffff81000100); got != "helper" {
		t.Errorf("from the cache: %s", got)
	}
	m := Key{Kind: Module, Path: "[nf_tables]"}
	s.Image(m).SetLoadAddress(0xffffffffc0100000)
	if got := nameAt(s, m, 0); got != "nf_init" {
		t.Errorf("module of that kernel: %s", got)
	}
}

// TestVmlinux takes a program for a kernel: what matters is an ELF with
// symbols that ran elsewhere than it was linked.
func TestVmlinux(t *testing.T) {
	path := compile(t, "calls.c", "-no-pie")
	all, _ := nm(t, path)
	addr := map[string]uint64{}
	for _, y := range all {
		addr[y.name] = y.addr
	}
	const slide = 0x2c000000
	s := testStore(t, Options{Vmlinux: path})
	k := Key{Kind: Kernel, Path: "[kernel.kallsyms]", BuildID: buildIDOf(t, path)}
	im := s.Image(k)
	im.SetReference("main", addr["main"]+slide)
	at := addr["visit"] + slide
	f := s.Function(s.Loc(Addr{Image: im, Offset: at + 3}))
	if f == nil || f.Name != "visit" || f.Entry != at {
		t.Fatalf("visit moved by %#x is %+v", slide, f)
	}
	code := testStore(t, Options{})
	plain := code.Image(Key{Path: path})
	off, _ := plain.FileOffset(addr["visit"])
	if got, want := im.Text(at, 16), plain.Text(off, 16); !bytes.Equal(got, want) || len(got) != 16 {
		t.Errorf("code of visit: % x, want % x", got, want)
	}

	s = testStore(t, Options{Vmlinux: path})
	im = s.Image(k)
	im.SetReference("_no_such_symbol", 0x1000)
	if f := im.FunctionAt(at); f != nil || im.Problem() == nil {
		t.Errorf("relocated by nothing: %+v, %v", f, im.Problem())
	}
}

func TestVDSO(t *testing.T) {
	own := ownVDSO()
	if own == nil {
		t.Fatal("this process has no vdso")
	}
	k := Key{Kind: VDSO, Path: "[vdso]", BuildID: own.buildID}
	s := testStore(t, Options{})
	im := s.Image(k)
	im.load()
	found := false
	for i := range im.symbols.all {
		found = found || strings.Contains(im.symbols.all[i].name, "clock_gettime")
	}
	if !found {
		t.Error("no clock_gettime in the vdso")
	}
	other := Key{Kind: VDSO, Path: "[vdso]", BuildID: strings.Repeat("0f", 20)}
	if got := nameAt(s, other, 0x900); got != "none" || s.Image(other).Problem() == nil {
		t.Errorf("our own vdso was taken for another: %s", got)
	}
	if im.Problem() != nil {
		t.Error(im.Problem())
	}
}

func TestPerfMap(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "tmp", "perf-77.map")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	text := `7f0000000000 100 old one
7f0000000100 80 LazyCompile:~fib /app/x.js:1
7f0000000200 10 kept
0x7f0000000040 0x20 new
7f0000000300 zz malformed

7f0000000400 0 empty
ffffffffffffff00 200 beyond the end
7f0000000500 10 last`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s := testStore(t, Options{Symfs: root})
	k := Key{Kind: JIT, Path: "//anon", PID: 77}
	for _, c := range []struct {
		at   uint64
		want string
	}{
		{0x7f0000000000, "none"}, // replaced by what overlaps it
		{0x7f0000000040, "new"},
		{0x7f0000000060, "none"},
		{0x7f0000000100, "LazyCompile:~fib /app/x.js:1"},
		{0x7f000000020f, "kept"},
		{0x7f0000000210, "none"},
		{0x7f000000050f, "last"},
	} {
		if got := nameAt(s, k, c.at); got != c.want {
			t.Errorf("%#x is in %q, want %q", c.at, got, c.want)
		}
	}
	ps := s.Problems()
	if len(ps) != 1 || ps[0].Kind != Damaged || !strings.Contains(ps[0].What, "4 malformed") {
		t.Errorf("problems: %v", ps)
	}
	none := Key{Kind: JIT, Path: "//anon", PID: 78}
	if got := nameAt(s, none, 0x7f0000000040); got != "none" {
		t.Errorf("another process: %s", got)
	}
	if p := s.Image(none).Problem(); p == nil || p.Kind != Missing {
		t.Errorf("problem: %v", p)
	}
}
