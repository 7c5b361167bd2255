package image

import (
	"fmt"
	"strings"
	"testing"
)

// nmSymbol is a line of nm -S: a function with its size.
type nmSymbol struct {
	addr, size uint64
	name       string
}

// nm lists the functions of a file, by address the names of all aliases.
func nm(t *testing.T, path string, args ...string) (all []nmSymbol, names map[uint64][]string) {
	names = map[uint64][]string{}
	for line := range strings.Lines(run(t, "nm", append(args, "-S", path)...)) {
		f := strings.Fields(line)
		if len(f) != 4 || !strings.Contains("TtWwi", f[2]) {
			continue
		}
		addr, ok1 := parseHex(f[0])
		size, ok2 := parseHex(f[1])
		if !ok1 || !ok2 {
			t.Fatalf("nm says %q", line)
		}
		name := plainName(f[3])
		all = append(all, nmSymbol{addr, size, name})
		names[addr] = append(names[addr], name)
	}
	return all, names
}

// checkSymbols asks for the first and last byte of every function nm knows.
func checkSymbols(t *testing.T, path string, least int, args ...string) {
	t.Helper()
	s := testStore(t, Options{NoDemangle: true})
	im := s.Image(Key{Path: path})
	all, names := nm(t, path, args...)
	if len(all) < least {
		t.Fatalf("nm shows %d functions of %s", len(all), path)
	}
	for _, y := range all {
		entry, ok := im.FileOffset(y.addr)
		if !ok {
			t.Fatalf("%s: %s at %#x is in no segment", path, y.name, y.addr)
		}
		if v, ok := im.Vaddr(entry); !ok || v != y.addr {
			t.Errorf("%s: address %#x became offset %#x became %#x", path, y.addr, entry, v)
		}
		f := s.Function(s.Loc(Addr{Image: im, Offset: entry}))
		if f == nil || f.Entry != entry {
			t.Errorf("%s: no function begins at %#x, %s", path, y.addr, y.name)
			continue
		}
		if !contains(names[y.addr], f.System) {
			t.Errorf("%s: %#x is %s, nm says %v", path, y.addr, f.System, names[y.addr])
		}
		last := s.Function(s.Loc(Addr{Image: im, Offset: entry + y.size, Return: true}))
		if last == nil || last.End < entry+y.size && f.End < entry+y.size {
			t.Errorf("%s: the last byte of %s is in %v", path, y.name, last)
		}
	}
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

func TestSymbolsEqualNM(t *testing.T) {
	t.Run("pie", func(t *testing.T) { checkSymbols(t, compile(t, "calls.c"), 5) })
	t.Run("fixed", func(t *testing.T) { checkSymbols(t, compile(t, "calls.c", "-no-pie"), 5) })
	t.Run("static", func(t *testing.T) { checkSymbols(t, compile(t, "calls.c", "-static"), 500) })
	t.Run("c++", func(t *testing.T) { checkSymbols(t, compile(t, "names.cc"), 10) })
	t.Run("dynamic", func(t *testing.T) { checkSymbols(t, libc, 1000, "-D") })
}

// TestBetter has one case for every rule of perf's choose_best_symbol, in its
// order.
func TestBetter(t *testing.T) {
	sized := func(y symbol) symbol { y.end = y.start + 8; return y }
	for _, c := range []struct {
		rule        string
		first, then symbol
		want        string
	}{
		{"size", symbol{name: "empty", bind: 1, typ: 2}, sized(symbol{name: "_weak", bind: 2, typ: 2}), "_weak"},
		{"type", sized(symbol{name: "label", bind: 1}), sized(symbol{name: "_weak", bind: 2, typ: 2}), "_weak"},
		{"weak", sized(symbol{name: "weak", bind: 2, typ: 2}), sized(symbol{name: "_l", typ: 2}), "_l"},
		{"global", sized(symbol{name: "local", typ: 2}), sized(symbol{name: "_g", bind: 1, typ: 2}), "_g"},
		{"underscores", sized(symbol{name: "__longer", typ: 2}), sized(symbol{name: "_s", typ: 2}), "_s"},
		{"length", sized(symbol{name: "short", typ: 2}), sized(symbol{name: "longer", typ: 2}), "longer"},
		{"first", sized(symbol{name: "one", typ: 2}), sized(symbol{name: "two", typ: 2}), "one"},
	} {
		for _, order := range [][]symbol{{c.first, c.then}, {c.then, c.first}} {
			if c.rule == "first" && order[0].name != "one" {
				continue
			}
			if c.rule == "size" && order[0].name != "empty" {
				continue // an unsized symbol behind its aliases gets a size
			}
			var b symtabBuilder
			for _, y := range order {
				b.add(y)
			}
			b.add(symbol{start: 0x100, end: 0x101, name: "behind"})
			if got := b.finish().all[0].name; got != c.want {
				t.Errorf("%s: of %s and %s, %s stands", c.rule, order[0].name, order[1].name, got)
			}
		}
	}
}

func TestOverlaps(t *testing.T) {
	var b symtabBuilder
	for _, y := range []symbol{
		{start: 0x1000, end: 0x1100, name: "outer"},
		{start: 0x1010, end: 0x1020, name: "inner"},
		{start: 0x1014, end: 0x1018, name: "innermost"},
		{start: 0x1200, end: 0x1200, name: "unsized"},
		{start: 0x1240, end: 0x1280, name: "next"},
		{start: 0x1280, end: 0x1280, name: "object", data: true},
		{start: 0x1300, end: 0x1300, name: "last"},
	} {
		b.add(y)
	}
	tab := b.finish()
	for _, c := range []struct {
		at   uint64
		want string
	}{
		{0xfff, ""}, {0x1000, "outer"}, {0x100f, "outer"}, {0x1010, "inner"}, {0x1014, "innermost"},
		{0x1018, "inner"}, {0x1020, "outer"}, {0x10ff, "outer"}, {0x1100, ""},
		{0x11ff, ""}, {0x1200, "unsized"}, {0x123f, "unsized"}, {0x1240, "next"}, {0x127f, "next"},
		{0x1280, ""}, {0x12ff, ""}, {0x1300, "last"}, {0x2fff, "last"}, {0x3000, ""},
	} {
		got := ""
		if i := tab.find(c.at); i >= 0 {
			got = tab.all[i].name
		}
		if got != c.want {
			t.Errorf("%#x is in %q, want %q", c.at, got, c.want)
		}
	}
}

// TestPLTNamesEqualObjdump compares every stub with the name objdump gives
// it, for the kinds of linkage tables there are.
func TestPLTNamesEqualObjdump(t *testing.T) {
	paths := map[string]string{
		"libc":    libc,
		"lazy":    compile(t, "calls.c", "-Wl,-z,lazy"),
		"now":     compile(t, "calls.c", "-Wl,-z,now"),
		"ibt":     compile(t, "calls.c", "-fcf-protection", "-Wl,-z,ibtplt", "-Wl,-z,lazy"),
		"ibt-now": compile(t, "calls.c", "-fcf-protection", "-Wl,-z,ibtplt", "-Wl,-z,now"),
		"c++":     compile(t, "names.cc"),
		"fixed":   compile(t, "calls.c", "-no-pie"),
	}
	for name, path := range paths {
		t.Run(name, func(t *testing.T) { checkPLT(t, path) })
	}
}

func checkPLT(t *testing.T, path string) {
	s := testStore(t, Options{NoDemangle: true})
	im := s.Image(Key{Path: path})
	im.load()
	stubs := 0
	last := ""
	for _, d := range objdump(t, path) {
		name, ok := strings.CutSuffix(d.symbol, "@plt")
		if !ok || d.symbol == last {
			continue
		}
		last = d.symbol
		stubs++
		entry, _ := im.FileOffset(d.addr)
		f := s.Function(s.Loc(Addr{Image: im, Offset: entry}))
		switch {
		case f == nil || !f.Stub || f.Entry != entry:
			t.Errorf("%s at %#x is %+v", d.symbol, d.addr, f)
		case strings.HasPrefix(name, "*ABS*+"):
			// objdump says where the resolver is, we say what it is called.
			resolver, _, _ := strings.Cut(strings.TrimPrefix(name, "*ABS*+"), "@")
			addr, _ := parseHex(resolver)
			if target := s.ResolvePLT(f); target == nil || fmt.Sprintf("%#x", mustVaddr(t, im, target.Entry)) != fmt.Sprintf("%#x", addr) {
				t.Errorf("%s: %s leads to %+v", d.symbol, f.System, target)
			}
		case f.System != plainName(name)+"@plt":
			t.Errorf("%s at %#x is called %s", d.symbol, d.addr, f.System)
		}
	}
	if stubs == 0 {
		t.Error("objdump shows no stub")
	}
	t.Logf("%d stubs", stubs)
}

func mustVaddr(t *testing.T, im *Image, off uint64) uint64 {
	v, ok := im.Vaddr(off)
	if !ok {
		t.Fatalf("offset %#x of %s is in no segment", off, im.Path)
	}
	return v
}

func TestResolvePLT(t *testing.T) {
	path := compile(t, "calls.c", "-Wl,-z,lazy")
	s := testStore(t, Options{})
	im := s.Image(Key{Path: path})
	im.load()
	var stub *Function
	for i := range im.symbols.all {
		if y := &im.symbols.all[i]; y.name == "qsort@plt" {
			stub = im.function(y)
		}
	}
	if stub == nil {
		t.Fatal("no qsort@plt")
	}
	if f := s.ResolvePLT(stub); f != nil {
		t.Fatalf("qsort resolved to %+v without any library", f)
	}
	s = testStore(t, Options{})
	im = s.Image(Key{Path: path})
	stub = im.FunctionAt(stub.Entry)
	lib := s.Image(Key{Path: libc})
	f := s.ResolvePLT(stub)
	if f == nil || f.Image != lib || f.Name != "qsort" || f.Stub {
		t.Errorf("qsort@plt resolved to %+v", f)
	}
	if s.ResolvePLT(f) != f || s.ResolvePLT(nil) != nil {
		t.Error("a function that is no stub did not resolve to itself")
	}
}
