package image

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// addresses are locations all over the functions of an image.
func addresses(t *testing.T, s *Store, im *Image, step uint64) (locs []Loc, vaddrs []string) {
	im.load()
	for i := range im.symbols.all {
		y := &im.symbols.all[i]
		if y.data || y.stub {
			continue
		}
		for off := y.start; off < y.end; off += step {
			v, ok := im.Vaddr(off)
			if !ok {
				continue
			}
			locs = append(locs, s.Loc(Addr{Image: im, Offset: off}))
			vaddrs = append(vaddrs, fmt.Sprintf("%#x", v))
		}
	}
	if len(locs) == 0 {
		t.Fatalf("no function in %s", im.Path)
	}
	return locs, vaddrs
}

func TestLinesEqualAddr2line(t *testing.T) {
	for _, c := range []struct {
		source string
		args   string
	}{
		{"calls.c", "-g -no-pie -ffunction-sections"}, {"calls.c", "-g -gz"}, {"names.cc", "-gdwarf-3"}, {"names.cc", "-gdwarf-5"},
	} {
		t.Run(c.source+" "+c.args, func(t *testing.T) {
			path := compile(t, c.source, strings.Fields(c.args)...)
			s := testStore(t, Options{})
			locs, vaddrs := addresses(t, s, s.Image(Key{Path: path}), 17)
			cmd := exec.Command("addr2line", "-e", path)
			cmd.Stdin = strings.NewReader(strings.Join(vaddrs, "\n"))
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			known := 0
			for i, want := range strings.Split(strings.TrimSpace(string(out)), "\n") {
				want, _, _ = strings.Cut(want, " (discriminator")
				file, line := s.Line(locs[i])
				if strings.HasSuffix(want, ":?") || strings.HasSuffix(want, ":0") {
					if line != 0 {
						t.Errorf("%s: addr2line knows no line, we say %s:%d", vaddrs[i], file, line)
					}
					continue
				}
				known++
				if got := fmt.Sprintf("%s:%d", filepath.Clean(file), line); got != filepath.Clean(want) {
					t.Errorf("%s: %s, addr2line says %s", vaddrs[i], got, want)
				}
			}
			if known < 15 {
				t.Errorf("addr2line knows %d of %d addresses", known, len(locs))
			}
		})
	}
}

// declaredAt is the line of a source file that contains a text.
func declaredAt(t *testing.T, path, text string) int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, _, ok := strings.Cut(string(b), text)
	if !ok {
		t.Fatalf("%s does not contain %q", path, text)
	}
	return strings.Count(before, "\n") + 1
}

func TestStartLine(t *testing.T) {
	for _, c := range []struct {
		source, function, text string
	}{
		{"calls.c", "leaf", "static int __attribute__((noinline)) leaf"},
		{"calls.c", "visit", "int visit("},
		{"calls.c", "main", "int main("},
		{"names.cc", "ns::Q::st", "Q::st(int a)"},
		{"names.cc", "ns::Q::operator()", "Q::operator()(int a) const {"},
		{"names.cc", "Box<long>::get<short>", "T get(U u)"},
		{"names.cc", "(anonymous namespace)::anon", "int anon(int x)"},
	} {
		path := compile(t, c.source, "-g")
		s := testStore(t, Options{})
		im := s.Image(Key{Path: path})
		im.load()
		var f *Function
		for i := range im.symbols.all {
			if g := im.function(&im.symbols.all[i]); g.Name == c.function {
				f = g
			}
		}
		if f == nil {
			t.Errorf("no %s in %s", c.function, c.source)
			continue
		}
		want := declaredAt(t, filepath.Join("testdata", c.source), c.text)
		if got := s.StartLine(f); got != want || filepath.Base(f.File) != c.source {
			t.Errorf("%s is declared at %s:%d, want %s:%d", c.function, f.File, got, c.source, want)
		}
	}
}

// TestGoLines looks into a Go program, as -pgo will: lines as the runtime
// tells them, and the line of the declaration.
func TestGoLines(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	program := `package main

import "runtime"

//go:noinline
func work(n int) (file string, line int) {
	if n > 0 {
		return work(n - 1)
	}
	_, file, line, _ = runtime.Caller(0) // here
	return
}

func main() {
	_, line := work(3)
	println(line)
}
`
	if err := os.WriteFile(source, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "main")
	run(t, "go", "build", "-o", path, source)
	s := testStore(t, Options{})
	im := s.Image(Key{Path: path})
	im.load()
	var work *Function
	for i := range im.symbols.all {
		if im.symbols.all[i].name == "main.work" {
			work = im.function(&im.symbols.all[i])
		}
	}
	if work == nil {
		t.Fatal("no main.work")
	}
	lines := map[int]bool{}
	for off := work.Entry; off < work.End; off++ {
		s.Loc(Addr{Image: im, Offset: off})
	}
	for l := range Loc(s.NumLocs()) {
		_, line := s.Line(l)
		lines[line] = true
	}
	if want := declaredAt(t, source, "func work"); s.StartLine(work) != want || work.File != source {
		t.Errorf("main.work is declared at %s:%d, want %s:%d", work.File, work.StartLine, source, want)
	}
	for _, text := range []string{"return work", "// here"} {
		if want := declaredAt(t, source, text); !lines[want] {
			t.Errorf("no instruction of main.work has line %d", want)
		}
	}
}
