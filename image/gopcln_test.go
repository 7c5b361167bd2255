package image

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const goProgram = `package main

import (
	"fmt"
	"sort"
	"strings"
)

type point struct{ x, y int }

func (p point) sum() int { return p.x + p.y }

func twice(p point) int { return p.sum() + p.sum() }

//go:noinline
func work(n int) int {
	total := 0
	for i := range n {
		total += twice(point{i, n})
	}
	return total
}

func main() {
	names := []string{"b", "a"}
	sort.Strings(names)
	fmt.Println(work(3), strings.Join(names, ","))
}
`

func buildGo(t testing.TB, args ...string) string {
	t.Helper()
	key := "go " + strings.Join(args, " ")
	if path, ok := built[key]; ok {
		return path
	}
	dir := filepath.Join(buildDir, fmt.Sprint(len(built)))
	source, path := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(source, []byte(goProgram), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", append(append([]string{"build", "-trimpath", "-o", path}, args...), source)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	built[key] = path
	return path
}

// TestStrippedGo compares what is known of a stripped Go program, from the
// table of its functions, with symbols and DWARF of the same program: names,
// lines, inlined calls, start lines.
func TestStrippedGo(t *testing.T) {
	for _, mode := range []string{"exe", "pie"} {
		whole, stripped := buildGo(t, "-buildmode="+mode), buildGo(t, "-buildmode="+mode, "-ldflags=-s -w")
		ref, s := testStore(t, Options{}), testStore(t, Options{})
		im := ref.Image(Key{Path: whole})
		im.load()
		var offsets []uint64
		for i := range im.symbols.all {
			y := &im.symbols.all[i]
			// Assembly is not inlined, and its lines count differently.
			if strings.HasPrefix(y.name, "main.") || strings.HasPrefix(y.name, "sort.") || strings.HasPrefix(y.name, "fmt.") || strings.HasPrefix(y.name, "strings.") {
				for off := y.start; off < y.end; off += 5 {
					offsets = append(offsets, off)
				}
			}
		}
		at, ok := im.Vaddr(offsets[0])
		other, ok2 := s.Image(Key{Path: stripped}).FileOffset(at)
		if !ok || !ok2 {
			t.Fatal("no text")
		}
		move := other - offsets[0] // headers of stripped programs may be shorter
		for _, off := range offsets {
			ref.Loc(Addr{Image: im, Offset: off})
			s.Loc(Addr{Image: s.Image(Key{Path: stripped}), Offset: off + move})
		}
		inlined, differ := 0, 0
		for l := range Loc(len(offsets)) {
			want, got := goFrames(ref.Frames(l)), goFrames(s.Frames(l))
			inlined += strings.Count(want, "\n") - 1
			if got != want {
				if differ++; differ < 5 {
					t.Logf("%#x: stripped\n%swhole\n%s", offsets[l], got, want)
				}
			}
		}
		t.Logf("%s: %d addresses, %d inlined, %d differ", mode, len(offsets), inlined, differ)
		if inlined < 1000 || differ*200 > len(offsets) || len(s.Problems()) > 0 {
			t.Errorf("%s: %d addresses, %d inlined, %d differ, %v", mode, len(offsets), inlined, differ, s.Problems())
		}
	}
}

func goFrames(frames []Frame) string {
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&b, "%s %s:%d from %s:%d\n", f.Name, f.File, f.Line, f.DeclaredIn, f.StartLine)
	}
	return b.String()
}

// goTableOf is the table of a stripped program.
func goTableOf(t testing.TB) []byte {
	e, err := (&openFiles{}).openELF(buildGo(t, "-ldflags=-s -w"))
	if err != nil {
		t.Fatal(err)
	}
	table, err := e.goTable()
	if err != nil {
		t.Fatal(err)
	}
	return table.b
}

// TestDamagedGoTable asks everything of a table with bytes changed.
func TestDamagedGoTable(t *testing.T) {
	b := goTableOf(t)
	exerciseGoTable(b)
	x := uint32(1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const runs = 60
	for run := range runs {
		d := bytes.Clone(b)
		for range 200 {
			x = x*1664525 + 1013904223
			if at := int(x>>8) % len(d); run > 0 || at > 100 {
				d[at] = byte(x >> 24)
			}
		}
		d = d[:len(d)-int(x>>4)%len(d)/2]
		copy(d, b[:72]) // the header, or nothing is read
		if run%8 == 0 && len(d) > 72 {
			d[8+run%64] = byte(x)
		}
		exerciseGoTable(d)
	}
	runtime.ReadMemStats(&after)
	if per := (after.TotalAlloc - before.TotalAlloc) / runs; per > uint64(20*len(b)) {
		t.Errorf("%d bytes allocated for a table of %d", per, len(b))
	}
}

func exerciseGoTable(b []byte) {
	t := &goTable{b: b, order: hostOrder}
	if t.header() != nil {
		return
	}
	t.inline = func(off uint32) []byte { return b[min(int(off), len(b)):] }
	var y symtabBuilder
	t.addSymbols(&y, func(a uint64) (uint64, bool) { return a, true })
	for i := 0; i < len(y.all); i += 17 {
		if f, ok := t.find(y.all[i].start); ok {
			t.inlined(f, 3)
		}
	}
}

func FuzzGoTable(f *testing.F) {
	f.Add(goTableOf(f)[:4096])
	f.Fuzz(func(t *testing.T, b []byte) { exerciseGoTable(b) })
}
